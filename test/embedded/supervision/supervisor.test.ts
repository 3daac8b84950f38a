import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSupervisor, type Supervisor } from '../../../embedded/supervision/supervisor';
import type { ComponentEvent, ComponentSpec } from '../../../embedded/supervision/component';
import { identify } from '../../../embedded/supervision/process-identity';
import { openRunState, stopOrphans } from '../../../embedded/supervision/run-state';
import { until } from '../../support/until';

/** A part that appends what happens to it to a file, and ends 50 ms after a SIGTERM. */
const PROGRAM = `
const fs = require('fs');
const [name, diary] = process.argv.slice(2);
const note = (what) => fs.appendFileSync(diary, name + ' ' + what + '\\n');
process.on('SIGTERM', () => setTimeout(() => { note('stops'); process.exit(0); }, 50));
console.error(name + ' says hello');
note('runs');
setInterval(() => {}, 1000);
`;
const DEAF = `process.on('SIGTERM', () => {}); require('fs').appendFileSync(process.argv[3], process.argv[2] + ' runs\\n'); setInterval(() => {}, 1000);`;

let folder: string;
let diary: string;
const crews: Supervisor[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-crew-'));
  diary = join(folder, 'diary');
  writeFileSync(diary, '');
});
afterEach(async () => {
  for (const crew of crews.splice(0)) {
    crew.kill();
    await until(() => pids().every((pid) => identify(pid) === null), 5_000, 'the parts to end');
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

function part(
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

function newCrew() {
  const events: { part: string; event: ComponentEvent }[] = [];
  const lines: string[] = [];
  const crew = createSupervisor({
    logs: folder,
    state: openRunState(folder),
    onLine: (name, line) => lines.push(`${name}: ${line}`),
    onEvent: (name, event) => events.push({ part: name, event }),
  });
  crews.push(crew);
  return { crew, events, lines };
}

describe('the parts of a stack', () => {
  test('are started again when they are killed, and their new process is noted', async () => {
    const { crew, events } = newCrew();
    await crew.launch(part('api'));
    const first = pidOf('api');
    process.kill(first, 'SIGKILL');
    await until(() => pidOf('api') !== 0 && pidOf('api') !== first, 5_000, 'a new process');
    await until(() => diaryLines().filter((line) => line === 'api runs').length === 2, 5_000, 'it');
    expect(events.map(({ event }) => event.kind)).toEqual(['started', 'ready', 'died', 'started']);
    expect(events[2]?.event).toMatchObject({ how: 'signal SIGKILL' });
  });

  test('drain in order: api, worker, temporal, postgres, whatever order they were started in', async () => {
    const { crew } = newCrew();
    for (const name of ['postgres', 'worker', 'temporal', 'api']) await crew.launch(part(name));
    const reports: string[] = [];
    await crew.stop(({ name, result }) => reports.push(`${name} ${result}`));
    const stops = diaryLines().filter((line) => line.endsWith('stops'));
    expect(stops).toEqual(['api stops', 'worker stops', 'temporal stops', 'postgres stops']);
    expect(reports).toEqual(['api done', 'worker done', 'temporal done', 'postgres done']);
    expect(pids()).toEqual([]);
  });

  test('that do not hear the stop are killed when their time is up', async () => {
    const { crew, events } = newCrew();
    await crew.launch(part('worker', { program: DEAF, stopTimeoutMs: 100 }));
    const pid = pidOf('worker');
    await crew.stop(() => undefined);
    expect(identify(pid)).toBeNull();
    expect(events.at(-1)?.event).toEqual({ kind: 'killed', afterMs: 100 });
  });

  test('end at once when they are killed together', async () => {
    const { crew } = newCrew();
    await crew.launch(part('api', { program: DEAF }));
    await crew.launch(part('worker', { program: DEAF }));
    const processes = pids();
    expect(processes).toHaveLength(2);
    crew.kill();
    await until(() => processes.every((pid) => identify(pid) === null), 2_000, 'both to end');
  });

  test('that were ready are started again however often they are killed', async () => {
    const { crew, events } = newCrew();
    let readyPid = 0;
    const runs = (pid: number): boolean => {
      const isReady = diaryLines().includes(`api runs as ${pid}`);
      if (isReady) readyPid = pid;
      return isReady;
    };
    const program = PROGRAM.replace("note('runs')", "note('runs as ' + process.pid)");
    await crew.launch(part('api', { program, isReady: runs }));
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

  test('that die five times in a row are given up, with their last log lines', async () => {
    const { crew, events } = newCrew();
    const program = `console.error('no such luck'); process.exit(3);`;
    const spec = part('api', { program });
    const message = expect.stringMatching(
      /api died 5 times within 30 s \(exit status 3\)[^]*no such luck[^]*api\.log/,
    );
    await expect(crew.launch(spec)).rejects.toMatchObject({ code: 'internal', message });
    await expect(crew.failed).rejects.toMatchObject({ message });
    expect(events.filter(({ event }) => event.kind === 'started')).toHaveLength(5);
  }, 15_000);

  test('whose program is missing are given up too', async () => {
    const { crew } = newCrew();
    await expect(crew.launch(part('api', { command: '/nowhere/at/all' }))).rejects.toMatchObject({
      message: expect.stringContaining('ENOENT'),
    });
  }, 15_000);

  test('that are not ready in time say so with their log', async () => {
    const { crew } = newCrew();
    const spec = part('api', { isReady: () => false, readyTimeoutMs: 300 });
    await expect(crew.launch(spec)).rejects.toMatchObject({
      message: expect.stringContaining('api was not ready within 0.3 s'),
    });
  });

  test('log to their file, and every line is shown once', async () => {
    const { crew, lines } = newCrew();
    await crew.launch(part('api'));
    await until(() => lines.length > 0, 5_000, 'a line');
    await crew.stop(() => undefined);
    expect(lines).toEqual(['api: api says hello']);
    expect(readFileSync(join(folder, 'api.log'), 'utf8')).toBe('api says hello\n');
  });

  test('cannot be started any more once the stop has begun', async () => {
    const { crew } = newCrew();
    await crew.stop(() => undefined);
    await expect(crew.launch(part('api'))).rejects.toMatchObject({ code: 'internal' });
  });
});

describe('what a killed supervisor leaves behind', () => {
  test('is stopped by the next one, in the order of a drain', async () => {
    const { crew } = newCrew();
    await crew.launch(part('temporal'));
    await crew.launch(part('api'));
    const heard: string[] = [];
    const state = openRunState(folder);
    const notes = state.read();
    // As after a kill: the parts live, and their supervisor starts nothing again.
    expect(
      await stopOrphans({ ...state, clear: () => undefined }, ({ name }) => heard.push(name)),
    ).toBe(2);
    expect(heard).toEqual(['api', 'temporal']);
    expect(notes.every(({ pid }) => identify(pid) === null)).toBe(true);
  });

  test('is left alone where another process has the number now', async () => {
    const state = openRunState(folder);
    const stranger = { pid: process.pid, startedAt: 'another boot/1' };
    state.write([{ ...stranger, name: 'api', stopSignal: 'SIGTERM', stopTimeoutMs: 1_000 }]);
    expect(await stopOrphans(state, () => undefined)).toBe(0);
    expect(state.read()).toEqual([]);
  });
});
