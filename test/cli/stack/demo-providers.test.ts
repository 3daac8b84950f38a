import type { Batch } from 'openai/resources/batches';
import { createProgram } from '../../../cli/program';
import {
  delegatingSettings,
  followJobs,
  modelRows,
  slowDownProvider,
} from '../../../cli/stack/demo-providers';
import type { ProviderJob } from '../../../cli/batches/provider-job';
import { loadConfig } from '../../../platform/config';
import { startSimulator } from '../../../simulator/main';

const job = (change: Partial<ProviderJob>): ProviderJob => ({
  ...{ id: 'job_1', batch_id: 'batch_1', model: 'large', provider: 'simulated' },
  ...{ status: 'in_progress', provider_status: 'in_progress', external_id: 'batch_there' },
  ...{ provider_type: 'openai', external_input_id: 'file-there' },
  ...{ generation: 0, cost: null, poll_failures: 0, created_at: 0, error: null },
  request_counts: { total: 40, completed: 0, failed: 0 },
  ...change,
});

const batchWith = (completed: number) =>
  ({ id: 'batch_1', request_counts: { total: 100, completed, failed: 0 } }) as Batch;

it('the settings of the demo delegate a model to the simulator, whose jobs then take seconds', async () => {
  const simulator = await startSimulator({ port: 0 });
  try {
    const config = loadConfig({ env: {}, overrides: delegatingSettings(simulator.url) });
    expect(Object.keys(config.delegates)).toEqual(['nightshift-large']);
    await slowDownProvider(config);
    const answer = await fetch(`${simulator.url}/simulator/providers/config`);
    expect(await answer.json()).toMatchObject({ validating_ms: 3_000, running_ms: 10_000 });
  } finally {
    await simulator.close();
  }
});

it('the demo of providers refuses a stack without the simulator', async () => {
  await expect(slowDownProvider({ providers: {} })).rejects.toThrow('needs the simulator');
});

it.each([
  ['--input', 'requests.jsonl'],
  ['--scene', 'flow'],
])('the demo of providers refuses %s', async (...other) => {
  const error = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  const program = createProgram();
  for (const command of [program, ...program.commands]) command.exitOverride();
  const args = ['node', 'nightshift', 'demo', '--providers', ...other];
  await expect(program.parseAsync(args)).rejects.toThrow('cannot be used with');
  error.mockRestore();
});

it('each state of a job is said once, beside the answers of the batch', async () => {
  const abort = new AbortController();
  const lines: string[] = [];
  const looks = [
    job({ external_id: null, provider_status: null, status: 'pending' }),
    job({}),
    job({ request_counts: { total: 40, completed: 1, failed: 0 } }),
    job({ request_counts: { total: 40, completed: 20, failed: 0 } }),
    job({ status: 'completed', request_counts: { total: 40, completed: 40, failed: 0 } }),
  ];
  let look = 0;
  await followJobs('batch_1', {
    signal: abort.signal,
    reporter: { say: (line) => void lines.push(line) },
    service: {
      jobs: () => Promise.resolve(looks.slice(look, look + 1)),
      retrieve: () => {
        if (look === looks.length - 1) abort.abort();
        return Promise.resolve(batchWith(10 * ++look));
      },
    },
  });
  const place = 'large at simulated:';
  expect(lines).toEqual([
    `${place} no job yet, pending, 0 of 40 there; the batch has 10 of 100 answers`,
    `${place} job batch_there in_progress, 0 of 40 there; the batch has 20 of 100 answers`,
    `${place} job batch_there in_progress, 20 of 40 there; the batch has 40 of 100 answers`,
    `${place} job batch_there answers collected, 40 of 40 there; the batch has 50 of 100 answers`,
  ]);
});

it('local answers and those of jobs are told apart at the end, with what they cost', () => {
  const ended = job({ cost: 0.012, request_counts: { total: 40, completed: 40, failed: 0 } });
  expect(modelRows(batchWith(100), [ended]).slice(1)).toEqual([
    ['local model server', '60', '-', '-'],
    ['large at simulated', '40', '$0.0120', 'batch_there'],
  ]);
});
