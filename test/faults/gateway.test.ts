import { expectCompleted } from './expect-completed';
import type { GatewayProcess } from '../support/gateway-process';
import { startGatewayProcess } from '../support/gateway-process';
import type { ProcessBesideStack } from '../support/process-beside-stack';
import { startBesideStack } from '../support/process-beside-stack';
import type { RecordingBackend, Seen } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../support/stack';
import type { TcpProxy } from '../support/tcp-proxy';
import { startTcpProxy } from '../support/tcp-proxy';
import { until } from '../support/until';
import { FLUSH_MS } from '../support/variant';

/** Requests that a worker has open, and those of them that the gateway has in flight. */
const [OPEN, IN_FLIGHT] = [40, 8];
/** Of a batch, and of one that two workers share. */
const [LINES, MORE_LINES] = [300, 450];
/** So few that one chunk has them all. Its time slice outlasts a freeze, so that it does not close what is held. */
const FEW_LINES = 120;
const WAIT_MS = 60_000;
const TEST_MS = 120_000;
/** How long a line waits at the gateway, ms. */
const TTL_MS = 3_000;
/** Models whose lines have one try, or two. */
const [ONE_TRY, TWO_TRIES] = ['one-try', 'two-tries'];

let backend: RecordingBackend;
/** The way from the gateway to its only backend. */
let link: TcpProxy;
let gateway: GatewayProcess;
let stack: TestStack;

beforeAll(async () => {
  backend = await startRecordingBackend();
  link = await startTcpProxy(Number(new URL(backend.url).port));
  gateway = await startGatewayProcess({
    backends: [`http://127.0.0.1:${link.port}`],
    settings: {
      drain_budget: '1s',
      fair_request_queue: { batch_queue_ttl: `${TTL_MS}ms`, no_backend_ttl: '500ms' },
      request_queue_controller: {
        watermark_per_backend: IN_FLIGHT,
        lower_bound_per_backend: IN_FLIGHT,
        upper_bound_per_backend: IN_FLIGHT,
      },
      bands: { ceilings: [1, 1, 1] },
    },
    pool: { probe: { interval: '100ms' } },
  });
  const route = (retries: number) => ({
    ...{ url: gateway.url, api_key_file: gateway.tokenFile, send_fairness_header: true },
    ...{ request_timeout: '20s', initial_backoff: '50ms', max_backoff: '500ms' },
    max_retries: retries,
  });
  stack = await startStack({
    config: {
      model_gateways: { [ONE_TRY]: route(0), [TWO_TRIES]: route(1) },
      concurrency: { global: OPEN, per_model: OPEN },
      worker: { heartbeat_timeout: '3s' },
    },
    // One test adds a second worker.
    processes: 1,
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await gateway?.stop();
  await link?.close();
  await backend?.close();
}, 60_000);
beforeEach(async () => {
  Object.assign(backend, { latencyMs: 30, hold: () => false }).seen.length = 0;
  await until(() => gateway.isReady(), WAIT_MS, 'a gateway that is ready');
});

async function submitted(model: string, lines = LINES): Promise<string> {
  return (
    await submit(
      stack.client,
      chatLines(lines, () => model),
    )
  ).id;
}

async function untilHeld(count: number): Promise<void> {
  const isHeld = async () => ((await gateway.flow())?.queued.sheddable ?? 0) >= count;
  await until(isHeld, WAIT_MS, `${count} lines that wait at the gateway`, 5);
}

/** Ends the gateway; resolves when the next one is ready. */
async function restarted(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const pid = gateway.pid();
  process.kill(pid ?? 0, signal);
  const isNew = async () => ![null, pid].includes(gateway.pid()) && (await gateway.isReady());
  await until(isNew, WAIT_MS, 'a new gateway', 5);
}

/** How often workers were told that a line was dropped for this reason. */
async function drops(code: string): Promise<number> {
  const lines = await stack.metric('worker', 'model_requests_dropped_total');
  const own = lines.filter((line) => line.includes(`code="${code}"`));
  return own.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** How often the backend has seen each line. */
function timesSeen(seen: readonly Seen[]): number[] {
  const times = new Map<string, number>();
  for (const { requestId } of seen) times.set(requestId, (times.get(requestId) ?? 0) + 1);
  return [...times.values()];
}

it(
  'loses and doubles no line when the gateway is killed, and costs an open line one try',
  async () => {
    const id = await submitted(TWO_TRIES);
    await until(() => backend.seen.length >= LINES / 4, WAIT_MS, 'a quarter of the batch');
    // No answer is on its way through the gateway when all open lines are in flight or wait there. A gateway that is kept
    // from the processor may have any number of them, whose lines would be sent again too.
    backend.hold = () => true;
    await until(() => backend.inFlight() === IN_FLIGHT, WAIT_MS, 'held answers', 5);
    await untilHeld(OPEN - IN_FLIGHT);
    const restart = restarted('SIGKILL');
    backend.hold = () => false;
    await restart;
    await expectCompleted(stack.client, id, { lines: LINES });
    const times = timesSeen(backend.seen);
    expect(times).toHaveLength(LINES);
    expect(times.filter((count) => count > 1)).toEqual(Array(IN_FLIGHT).fill(2));
  },
  TEST_MS,
);

it(
  'costs a line no try when the gateway is frozen for longer than lines may wait',
  async () => {
    const before = await drops('queue_ttl_expired');
    const id = await submitted(ONE_TRY, FEW_LINES);
    await untilHeld(OPEN - IN_FLIGHT);
    const frozenMs = Date.now();
    process.kill(gateway.pid() ?? 0, 'SIGSTOP');
    await until(() => Date.now() > frozenMs + 1.5 * TTL_MS, WAIT_MS, 'the end of the time to live');
    process.kill(gateway.pid() ?? 0, 'SIGCONT');
    await expectCompleted(stack.client, id, { lines: FEW_LINES });
    expect(await drops('queue_ttl_expired')).toBeGreaterThan(before);
    expect(backend.seen).toHaveLength(FEW_LINES);
  },
  TEST_MS,
);

it(
  'costs the lines that wait at a gateway no try when it stops',
  async () => {
    backend.hold = ({ requestId }) => requestId.startsWith('user');
    const users = Array.from({ length: IN_FLIGHT }, (_, i) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-request-id': `user-${i}` },
        body: JSON.stringify({ model: ONE_TRY, messages: [] }),
      }).catch(() => null),
    );
    await until(() => backend.seen.length === IN_FLIGHT, WAIT_MS, 'users');
    const id = await submitted(ONE_TRY, OPEN);
    await untilHeld(OPEN);
    await restarted('SIGTERM');
    expect(await Promise.all(users)).toEqual(users.map(() => null));
    await expectCompleted(stack.client, id, { lines: OPEN });
    expect(await drops('shutting_down')).toBe(OPEN);
    expect(backend.seen).toHaveLength(IN_FLIGHT + OPEN);
  },
  TEST_MS,
);

it(
  'waits for backends that are away for longer than every time limit of the gateway',
  async () => {
    const id = await submitted(TWO_TRIES);
    await until(() => backend.seen.length >= LINES / 4, WAIT_MS, 'a quarter of the batch');
    await link.become('refuse');
    const isLong = async () => (await drops('no_backends')) >= 2 * OPEN;
    await until(isLong, WAIT_MS, 'lines that were dropped twice', 100);
    await link.become('pass');
    await expectCompleted(stack.client, id, { lines: LINES });
    expect(Math.max(...timesSeen(backend.seen))).toBeLessThanOrEqual(2);
  },
  TEST_MS,
);

describe('a worker that is frozen while its lines wait at the gateway', () => {
  let second: ProcessBesideStack;
  beforeEach(async () => {
    const { dataDir } = stack;
    second = await startBesideStack({ command: 'worker', name: 'second-worker', dataDir });
  });
  afterEach(() => second.stop());

  it(
    'may have them sent twice, and they are in the files once',
    async () => {
      backend.latencyMs = 60;
      const id = await submitted(TWO_TRIES, MORE_LINES);
      await untilHeld(OPEN);
      const pid = stack.pidOf('worker');
      process.kill(pid, 'SIGSTOP');
      const isTakenOver = () => timesSeen(backend.seen).some((count) => count > 1);
      await until(isTakenOver, WAIT_MS, 'lines of the frozen worker, sent by the other one');
      process.kill(pid, 'SIGCONT');
      await expectCompleted(stack.client, id, { lines: MORE_LINES });
      const times = timesSeen(backend.seen);
      expect(times).toHaveLength(MORE_LINES);
      // Those that were open, and those whose answers were not in the journal yet.
      const unwritten = Math.ceil((IN_FLIGHT * FLUSH_MS) / backend.latencyMs);
      expect(times.filter((count) => count > 1).length).toBeLessThanOrEqual(OPEN + unwritten);
    },
    TEST_MS,
  );
});
