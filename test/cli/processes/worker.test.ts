import { lazy } from '../../../cli/lazy-modules';
import { createProgram } from '../../../cli/program';
import type { Config } from '../../../platform/config';

afterEach(() => jest.restoreAllMocks());

/** The settings that `nightshift worker` runs a worker with; the worker itself refuses to start. */
async function workerSettings(...flags: string[]): Promise<Config> {
  const refusal = new Error('not started');
  const startWorker = jest.fn((_: Config) => Promise.reject(refusal));
  jest.spyOn(lazy, 'worker').mockReturnValue({ startWorker });
  jest.replaceProperty(process, 'env', {
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
    NIGHTSHIFT__GLOBAL_INFERENCE_GATEWAY__URL: 'http://127.0.0.1:1',
    NIGHTSHIFT__WORKER__ROLES: '["batch"]',
  });
  const run = createProgram().parseAsync(['worker', ...flags], { from: 'user' });
  await run.catch((error: unknown) => {
    if (error !== refusal) throw error;
  });
  const [call] = startWorker.mock.calls;
  if (call === undefined) throw new Error('the worker was not run');
  return call[0];
}

it('gives a worker the roles of its flag, and otherwise those of the settings', async () => {
  expect((await workerSettings('--roles', 'exec')).worker.roles).toEqual(['exec']);
  expect((await workerSettings('--roles', 'exec, batch')).worker.roles).toEqual(['exec', 'batch']);
  expect((await workerSettings()).worker.roles).toEqual(['batch']);
});

it.each([
  ['send', 'command line: worker.roles.0: expected one of batch, exec, got "send"'],
  ['exec,exec', 'command line: worker.roles: names a role twice'],
])('refuses the roles %j', async (roles, message) => {
  await expect(workerSettings('--roles', roles)).rejects.toThrow(message);
});

it('gives a worker the processes of its flag, and otherwise those of the settings', async () => {
  expect((await workerSettings('--processes', '3')).worker.processes).toBe(3);
  expect((await workerSettings('--processes', 'auto')).worker.processes).toBe('auto');
  expect((await workerSettings()).worker.processes).toBe('auto');
});

it.each(['0', 'many', '1.5'])('refuses %s processes', async (count) => {
  await expect(workerSettings('--processes', count)).rejects.toThrow(
    'command line: worker.processes: expected auto or a whole number of at least 1',
  );
});
