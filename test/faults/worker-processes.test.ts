import { readFileSync } from 'node:fs';
import { expectCompleted } from './expect-completed';
import { journalledAnswers } from '../support/journal-files';
import { isGone, ownerOfPort } from '../support/process-state';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import { chatLines, STACK_START_MS, startStack, submit, type TestStack } from '../support/stack';
import { until } from '../support/until';

const LINES = 600;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;

let backend: RecordingBackend;
let stack: TestStack;
/** The most requests that were open at once. */
let most = 0;

beforeAll(async () => {
  backend = await startRecordingBackend(LATENCY_MS);
  backend.latencyOf = () => {
    most = Math.max(most, backend.inFlight());
    return null;
  };
  stack = await startStack({
    config: {
      global_inference_gateway: {
        ...{ url: backend.url, request_timeout: '10s' },
        ...{ initial_backoff: '50ms', max_backoff: '500ms' },
      },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { processes: 2, heartbeat_timeout: '3s' },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 90_000);
beforeEach(() => {
  backend.seen.length = 0;
  most = 0;
});

/** The processes of the worker. Linux only. */
function children(parent = stack.pidOf('worker')): number[] {
  const text = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8');
  return text.trim().split(/\s+/).filter(Boolean).map(Number);
}

async function value(series: string): Promise<number> {
  const [line = ''] = await stack.metric('worker', series);
  return Number(line.split(' ').at(-1));
}

async function startedBatch(lines = LINES): Promise<string> {
  const batch = await submit(stack.client, chatLines(lines));
  await until(() => backend.seen.length >= lines / 4, 60_000, 'a quarter of the batch');
  return batch.id;
}

/** Every line has one result; only lines in flight and lost answers were sent twice. */
async function expectWhole(id: string, lost: number): Promise<void> {
  await expectCompleted(stack.client, id, { lines: LINES });
  expect(new Set(backend.seen.map(({ requestId }) => requestId)).size).toBe(LINES);
  expect(backend.seen.length - LINES).toBeLessThanOrEqual(IN_FLIGHT + lost);
}

const notJournalled = (id: string) =>
  backend.seen.filter(({ answered }) => answered).length - journalledAnswers(stack, id);

describe('two processes of one worker', () => {
  it('share one batch of one model and its permits, and show one metrics page', async () => {
    const pids = children();
    expect(pids).toHaveLength(2);
    const batch = await submit(stack.client, chatLines(LINES));
    const senders = new Set<number>();
    await until(
      () => {
        for (const { port } of backend.seen.slice(-50)) {
          const owner = ownerOfPort(port, pids);
          if (owner !== null) senders.add(owner);
        }
        return senders.size === 2;
      },
      60_000,
      'requests of both',
    );
    await expectCompleted(stack.client, batch.id, { lines: LINES });
    expect(backend.seen).toHaveLength(LINES);
    expect(most).toBeLessThanOrEqual(IN_FLIGHT);
    // The last chunk may be that of one process, so all permits are in use for most of the batch only.
    expect(most).toBeGreaterThan(IN_FLIGHT / 2);
    expect(await value('requests_settled_total{')).toBe(LINES);
    expect(await value('worker_processes{')).toBe(2);
    expect(await value('processor_max_inflight_concurrency{')).toBe(IN_FLIGHT);
  }, 180_000);

  it('lose nothing when one of them is killed, which is started again', async () => {
    const id = await startedBatch();
    const [pid = 0, other] = children();
    process.kill(pid, 'SIGKILL');
    await expectWhole(id, notJournalled(id));
    await until(() => children().length === 2, 30_000, 'two processes');
    expect(children()).toContain(other);
    expect(children()).not.toContain(pid);
    expect(await value('worker_process_deaths_total{')).toBe(1);
    await until(async () => (await value('worker_processes{')) === 2, 30_000, 'both to work');
  }, 180_000);

  it('end with their parent, and a new worker completes the batch', async () => {
    const id = await startedBatch();
    const pids = children();
    process.kill(stack.pidOf('worker'), 'SIGKILL');
    await until(() => pids.every(isGone), 10_000, 'the processes to end');
    await expectWhole(id, notJournalled(id));
  }, 180_000);

  it('finish their requests at a SIGTERM, and the batch goes on after the next start', async () => {
    const id = await startedBatch();
    const pids = children();
    const sent = () => backend.seen.length;
    expect(await stack.stop()).toBe(0);
    expect(pids.every(isGone)).toBe(true);
    expect(backend.seen.every(({ answered }) => answered)).toBe(true);
    const before = sent();
    expect(before).toBeLessThan(LINES);
    stack = await stack.restart();
    await expectCompleted(stack.client, id, { lines: LINES });
    expect(sent()).toBe(LINES);
  }, 240_000);
});
