import fs, { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComponentEvent, ComponentSpec } from '../../../embedded/supervision/component';
import { identify } from '../../../embedded/supervision/process-identity';
import {
  createRestartPolicy,
  type RestartPolicy,
} from '../../../embedded/supervision/restart-policy';
import { openRunState, stopOrphans } from '../../../embedded/supervision/run-state';
import { createSupervisor, type Supervisor } from '../../../embedded/supervision/supervisor';
import { until } from '../../support/until';

/** A component that writes down what happens to it, and ends 50 ms after a SIGTERM. */
const PROGRAM = `
const fs = require('fs');
const [name, diary] = process.argv.slice(2);
const note = (what) => fs.appendFileSync(diary, name + ' ' + what + '\\n');
process.on('SIGTERM', () => setTimeout(() => { note('stops'); process.exit(0); }, 50));
console.error(name + ' says hello');
note('runs');
setInterval(() => {}, 1000);
`;
/** Ignores SIGTERM. */
const STUBBORN = `process.on('SIGTERM', () => {}); require('fs').appendFileSync(process.argv[3], process.argv[2] + ' runs\\n'); setInterval(() => {}, 1000);`;

let folder: string;
let diary: string;
const supervisors: Supervisor[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-supervisor-'));
  diary = join(folder, 'diary');
  writeFileSync(diary, '');
});
afterEach(async () => {
  for (const supervisor of supervisors.splice(0)) {
    supervisor.kill();
    await until(
      () => pids().every((pid) => identify(pid) === null),
      5_000,
      'the components to end',
    );
  }
  rmSync(folder, { recursive: true });
});

const pids = (): number[] =>
  openRunState(folder)
    .read()
    .map(({ pid }) => pid);
const pidOf = (name: string): number =>
  openRunState(folder)
    .read()
    .find((process) => process.name === name)?.pid ?? 0;
const diaryLines = (): string[] => readFileSync(diary, 'utf8').trim().split('\n');

function component(
  name: string,
  changes: Partial<ComponentSpec> & { program?: string } = {},
): ComponentSpec {
  const { program = PROGRAM, ...others } = changes;
  const file = join(folder, `${name}.js`);
  writeFileSync(file, program);
  return {
    name,
    command: process.execPath,
    args: [file, name, diary],
    env: {},
    isReady: () => diaryLines().includes(`${name} runs`),
    readyTimeoutMs: 10_000,
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 5_000,
    killSignal: 'SIGKILL',
    ...others,
  };
}

/** The same decisions as in production, without the waiting. */
function withoutPauses(): RestartPolicy {
  const decide = createRestartPolicy();
  return (wasReady, nowMs) => {
    const decision = decide(wasReady, nowMs);
    return decision.kind === 'restart' ? { ...decision, inMs: 1 } : decision;
  };
}

function newSupervisor() {
  const events: { component: string; event: ComponentEvent }[] = [];
  const lines: string[] = [];
  const supervisor = createSupervisor({
    logs: folder,
    state: openRunState(folder),
    onLine: (name, line) => lines.push(`${name}: ${line}`),
    onEvent: (name, event) => events.push({ component: name, event }),
    restartPolicy: withoutPauses,
  });
  supervisors.push(supervisor);
  return { supervisor, events, lines };
}

describe('the supervisor of a stack', () => {
  it('restarts a component that was killed, and records its new process', async () => {
    const { supervisor, events } = newSupervisor();
    await supervisor.launch(component('api'));
    const first = pidOf('api');
    process.kill(first, 'SIGKILL');
    await until(() => pidOf('api') !== 0 && pidOf('api') !== first, 5_000, 'a new process');
    await until(() => diaryLines().filter((line) => line === 'api runs').length === 2, 5_000, 'it');
    expect(events.map(({ event }) => event.kind)).toEqual(['started', 'ready', 'died', 'started']);
    expect(events[2]?.event).toMatchObject({ how: 'signal SIGKILL' });
  });

  it('stops each component before those that it uses, even if they started in another order', async () => {
    const { supervisor } = newSupervisor();
    for (const name of ['postgres', 'gateway', 'worker', 'simulator', 'temporal', 'api'])
      await supervisor.launch(component(name));
    const reports: string[] = [];
    await supervisor.stop(({ name, result }) => reports.push(`${name} ${result}`));
    const stops = diaryLines().filter((line) => line.endsWith('stops'));
    const order = ['api', 'worker', 'gateway', 'simulator', 'temporal', 'postgres'];
    expect(stops).toEqual(order.map((name) => `${name} stops`));
    expect(reports).toEqual(order.map((name) => `${name} done`));
    expect(pids()).toEqual([]);
  });

  it('kills a component that ignores the stop signal until its timeout', async () => {
    const { supervisor, events } = newSupervisor();
    await supervisor.launch(component('worker', { program: STUBBORN, stopTimeoutMs: 100 }));
    const pid = pidOf('worker');
    await supervisor.stop(() => undefined);
    expect(identify(pid)).toBeNull();
    expect(events.at(-1)?.event).toEqual({ kind: 'killed', afterMs: 100 });
  });

  it('kills all components at once and closes their logs', async () => {
    const { supervisor } = newSupervisor();
    await supervisor.launch(component('api', { program: STUBBORN }));
    await supervisor.launch(component('worker', { program: STUBBORN }));
    const processes = pids();
    expect(processes).toHaveLength(2);
    const closed = jest.spyOn(fs, 'closeSync');
    supervisor.kill();
    supervisor.kill();
    expect(closed).toHaveBeenCalledTimes(2);
    closed.mockRestore();
    await until(() => processes.every((pid) => identify(pid) === null), 2_000, 'both to end');
  });

  it('restarts a component that was ready, however often it is killed', async () => {
    const { supervisor, events } = newSupervisor();
    let readyPid = 0;
    const runs = (pid: number): boolean => {
      const isReady = diaryLines().includes(`api runs as ${pid}`);
      if (isReady) readyPid = pid;
      return isReady;
    };
    const program = PROGRAM.replace("note('runs')", "note('runs as ' + process.pid)");
    await supervisor.launch(component('api', { program, isReady: runs }));
    for (let kill = 0; kill < 7; kill++) {
      const pid = await until(
        () => pidOf('api') === readyPid && readyPid,
        5_000,
        'a ready process',
      );
      process.kill(pid, 'SIGKILL');
      await until(() => pidOf('api') !== pid && pidOf('api') !== 0, 5_000, 'the next process');
    }
    expect(events.filter(({ event }) => event.kind === 'started')).toHaveLength(8);
  }, 40_000);

  it('gives up a component that dies five times before it is ready, with its last log lines', async () => {
    const { supervisor, events } = newSupervisor();
    const program = `console.error('no such luck'); process.exit(3);`;
    const spec = component('api', { program });
    const message = expect.stringMatching(
      /api died 5 times within 30 s \(exit status 3\)[^]*no such luck[^]*api\.log/,
    );
    await expect(supervisor.launch(spec)).rejects.toMatchObject({ code: 'internal', message });
    await expect(supervisor.failed).rejects.toMatchObject({ message });
    expect(events.filter(({ event }) => event.kind === 'started')).toHaveLength(5);
  });

  it('gives up a component whose program does not exist', async () => {
    const { supervisor } = newSupervisor();
    await expect(
      supervisor.launch(component('api', { command: '/nowhere/at/all' })),
    ).rejects.toMatchObject({
      message: expect.stringContaining('ENOENT'),
    });
  });

  it('fails with the log of a component that is not ready in time', async () => {
    const { supervisor } = newSupervisor();
    const spec = component('api', { isReady: () => false, readyTimeoutMs: 300 });
    await expect(supervisor.launch(spec)).rejects.toMatchObject({
      message: expect.stringContaining('api was not ready within 0.3 s'),
    });
  });

  it('writes each log line to the file and passes it on once', async () => {
    const { supervisor, lines } = newSupervisor();
    await supervisor.launch(component('api'));
    await until(() => lines.length > 0, 5_000, 'a line');
    await supervisor.stop(() => undefined);
    expect(lines).toEqual(['api: api says hello']);
    expect(readFileSync(join(folder, 'api.log'), 'utf8')).toBe('api says hello\n');
  });

  it('starts nothing more once the stop has begun', async () => {
    const { supervisor } = newSupervisor();
    await supervisor.stop(() => undefined);
    await expect(supervisor.launch(component('api'))).rejects.toMatchObject({ code: 'internal' });
  });
});

describe('components that a killed supervisor left running', () => {
  it('are stopped by the next supervisor, in stop order', async () => {
    const { supervisor } = newSupervisor();
    await supervisor.launch(component('temporal'));
    await supervisor.launch(component('api'));
    const heard: string[] = [];
    const state = openRunState(folder);
    const notes = state.read();
    // As after a kill of the supervisor: the components live, and nothing restarts them.
    expect(
      await stopOrphans({ ...state, clear: () => undefined }, ({ name }) => heard.push(name)),
    ).toBe(2);
    expect(heard).toEqual(['api', 'temporal']);
    expect(notes.every(({ pid }) => identify(pid) === null)).toBe(true);
  });

  it('are not touched if another process has their pid now', async () => {
    const state = openRunState(folder);
    const stranger = { pid: process.pid, startedAt: 'another boot/1' };
    state.write([{ ...stranger, name: 'api', stopSignal: 'SIGTERM', stopTimeoutMs: 1_000 }]);
    expect(await stopOrphans(state, () => undefined)).toBe(0);
    expect(state.read()).toEqual([]);
  });
});
