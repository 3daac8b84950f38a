import { EventEmitter } from 'node:events';
import { Command } from 'commander';
import { addFlowCommand } from '../../../cli/flow/commands';
import type { FlowIo } from '../../../cli/flow/flow-io';
import type { FlowPage } from '../../../platform/flow-page';
import { startLocalServer, type LocalServer } from '../../inference/local-server';
import { until } from '../../support/until';
import { flow, page, pool } from './flow-pages';

interface Gateway extends LocalServer {
  page: FlowPage;
  /** Status of every answer. */
  status: number;
}

let gateway: Gateway;
beforeEach(async () => {
  const state = { page: page(pool()), status: 200 };
  const server = await startLocalServer(({ url }, response) => {
    const status = url === '/admin/flow' ? state.status : 404;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(status === 200 ? JSON.stringify(state.page) : '{"status":"not_found"}');
  });
  gateway = Object.assign(state, server);
});
afterEach(() => gateway.close());

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Record<string, string>;
}

/** Runs `nightshift flow` on a terminal of the test's own. */
function run(args: readonly string[], terminal: Terminal = {}) {
  const { isTTY = false, columns = 100, rows = 30, env = {} } = terminal;
  const written = { out: '', err: '' };
  let press: ((key: string) => void) | null = null;
  let code: number | null = null;
  const screen = Object.assign(new EventEmitter(), {
    ...{ isTTY, columns, rows },
    write: (text: string) => void (written.out += text),
  });
  const signals = new EventEmitter();
  const io: FlowIo = {
    ...{ stdout: screen, env, signals, refreshMs: 5 },
    stderr: { write: (text: string) => void (written.err += text) },
    exitWith: (status) => void (code = status),
    readKeys: (onKey) => {
      press = onKey;
      return () => void (press = null);
    },
  };
  const program = new Command('nightshift').exitOverride();
  addFlowCommand(program, () => io);
  const done = program.parseAsync(['node', 'nightshift', 'flow', ...args]).then(() => code);
  return {
    ...{ done, signals, screen, written },
    key: (name: string) => press?.(name),
    hasKeys: () => press !== null,
    /** The lines of the last drawing. */
    drawn: () => {
      const last = written.out.split('\u001b[H').at(-1) ?? '';
      return last.split('\u001b[J', 1)[0]?.replaceAll('\u001b[K', '').split('\r\n') ?? [];
    },
  };
}

type Run = ReturnType<typeof run>;

async function untilDrawn(watch: Run, text: string): Promise<void> {
  await until(() => watch.drawn().join('\n').includes(text), 5_000, `"${text}" on the screen`, 2);
}

const LIVE = { isTTY: true, env: { NO_COLOR: '1' } };
const at = () => ['--url', gateway.url];

it('prints the state once and without colors if there is no terminal', async () => {
  const { done, written } = run(at());
  expect(await done).toBe(0);
  expect(written.out).toMatch(/^main \(\*\) {2}in flight 6 of 8/);
  expect(written.out).not.toContain('\u001b');
});

it('prints the state once with --once, in colors on a terminal', async () => {
  const { done, written } = run([...at(), '--once'], { isTTY: true });
  expect(await done).toBe(0);
  expect(written.out).toContain('\u001b[32mready\u001b[0m');
  expect(written.out).not.toContain('\u001b[?1049h');
});

it('prints the whole page as JSON', async () => {
  const { done, written } = run([...at(), '--json'], LIVE);
  expect(await done).toBe(0);
  expect(JSON.parse(written.out)).toEqual(gateway.page);
});

it('redraws the screen until q, and gives the terminal back', async () => {
  const watch = run(at(), LIVE);
  await untilDrawn(watch, 'in flight 6 of 8');
  gateway.page = page(pool({ stock: { requests: 7, cost: 1 } }));
  await untilDrawn(watch, 'in flight 7 of 8');
  watch.key('q');
  expect(await watch.done).toBe(0);
  expect(watch.hasKeys()).toBe(false);
  expect(watch.screen.listenerCount('resize')).toBe(0);
  expect(watch.written.out).toMatch(/^\u001b\[\?1049h\u001b\[\?25l/);
  expect(watch.written.out).toMatch(/\u001b\[\?25h\u001b\[\?1049l$/);
  expect(watch.written.out).not.toContain('\u001b[32m');
});

it.each([
  ['Ctrl-C', (watch: Run) => watch.key('\u0003')],
  ['SIGTERM', (watch: Run) => watch.signals.emit('SIGTERM', 'SIGTERM')],
])('ends with 130 at %s, and gives the terminal back', async (_name, interrupt) => {
  const watch = run(at(), LIVE);
  await untilDrawn(watch, 'main');
  interrupt(watch);
  expect(await watch.done).toBe(130);
  expect(watch.written.out).toMatch(/\u001b\[\?1049l$/);
});

it('sorts tenants and shows one pool after the other at the press of a key', async () => {
  const flows = [
    flow({ tenant: 'waits', queued: 5 }),
    flow({ tenant: 'runs', queued: 1, in_flight: 9 }),
  ];
  gateway.page = page(pool({ flows }), pool({ name: 'other' }));
  const watch = run(at(), LIVE);
  await untilDrawn(watch, 'waits');
  const order = () => watch.drawn().filter((line) => /^(waits|runs)/.test(line));
  expect(order()[0]).toMatch(/^waits/);
  watch.key('s');
  expect(order()[0]).toMatch(/^runs/);
  expect(watch.drawn()[0]).toContain('s sort (in flight)');
  const names = () => watch.drawn().filter((line) => /^(main|other) /.test(line));
  expect(names()).toHaveLength(2);
  watch.key('p');
  expect(names()).toEqual([expect.stringContaining('main')]);
  watch.key('p');
  expect(names()).toEqual([expect.stringContaining('other')]);
  watch.key('p');
  expect(names()).toHaveLength(2);
  watch.key('q');
  await watch.done;
});

it('draws anew when the terminal is resized, and never more than fits', async () => {
  const flows = Array.from({ length: 60 }, (_, i) =>
    flow({ tenant: `tenant-${i}`, queued: 60 - i }),
  );
  gateway.page = page(pool({ flows }));
  const watch = run(at(), LIVE);
  await untilDrawn(watch, 'tenant-0');
  expect(watch.drawn()).toHaveLength(30);
  expect(watch.drawn().at(-1)).toMatch(/^… \d+ more lines$/);
  Object.assign(watch.screen, { rows: 20, columns: 40 });
  watch.screen.emit('resize');
  expect(watch.drawn()).toHaveLength(20);
  expect(watch.drawn().filter((line) => line.length > 40)).toEqual([]);
  watch.key('q');
  await watch.done;
});

it('keeps the last state on the screen while the gateway is away, until it is back', async () => {
  const watch = run(at(), LIVE);
  await untilDrawn(watch, 'in flight 6 of 8');
  gateway.status = 503;
  await untilDrawn(watch, 'answers with status 503. Trying again; this is the state');
  expect(watch.drawn().join('\n')).toContain('in flight 6 of 8');
  gateway.page = page(pool({ stock: { requests: 1, cost: 1 } }));
  gateway.status = 200;
  await untilDrawn(watch, 'in flight 1 of 8');
  expect(watch.drawn().join('\n')).not.toContain('Trying again');
  watch.key('q');
  expect(await watch.done).toBe(0);
});

it('ends with 6 if no gateway answers at first', async () => {
  const url = gateway.url;
  await gateway.close();
  const { done, written } = run(['--url', url], LIVE);
  expect(await done).toBe(6);
  expect(written.err).toBe(
    `nightshift: No gateway answers at ${url} (ECONNREFUSED). Start one, or name its observability port with --url.\n`,
  );
  expect(written.out).toBe('');
});

it.each([
  ['a server that is no gateway', () => [...at(), '--once'], 'so it is no gateway'],
  ['an address that is no URL', () => ['--url', 'gateway:9091'], 'is not a base URL'],
])('ends with 1 for %s', async (_name, args, text) => {
  gateway.status = 404;
  const { done, written } = run(args());
  expect(await done).toBe(1);
  expect(written.err).toContain(text);
});
