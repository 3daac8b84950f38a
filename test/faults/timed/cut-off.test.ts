import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { LinkName, SecondWorker } from '../round/second-worker';
import { startSecondWorker } from '../round/second-worker';
import { expectCompleted } from '../expect-completed';
import type { RecordingBackend, Seen } from '../../support/recording-backend';
import { startRecordingBackend } from '../../support/recording-backend';
import type { TestStack } from '../../support/stack';
import { chatLines, STACK_START_MS, startStack, submit } from '../../support/stack';
import type { ProxyMood } from '../../support/tcp-proxy';
import { until } from '../../support/until';

/** Enough work for the remaining worker until after the end of the cut. */
const LINES = 700;
/** The same if both workers go on. */
const LINES_FOR_BOTH = 1_000;
const IN_FLIGHT = 20;
/** Slow enough for chunks to outlast a heartbeat timeout. */
const LATENCY_MS = 400;
const HEARTBEAT_MS = 3_000;
/** Requests after which a worker counts as going on. */
const FURTHER = 2 * IN_FLIGHT;
/** The longest wait for each effect of a cut. */
const CUT_MS = 60_000;
/** From a new attempt's start to the last request of the old one (docs/design/execution.md#progress-and-fencing). */
const FENCE_MS = 2_000;
const CLOCK_MS = 250;

/** The model servers of the stack's own worker and of the worker that is cut off. */
let near: RecordingBackend;
let far: RecordingBackend;
let stack: TestStack;
let worker: SecondWorker;
let temporal: Client;

beforeAll(async () => {
  [near, far] = [await startRecordingBackend(LATENCY_MS), await startRecordingBackend(LATENCY_MS)];
  stack = await startStack({
    config: {
      global_inference_gateway: {
        url: near.url,
        request_timeout: '20s',
        initial_backoff: '50ms',
        max_backoff: '500ms',
      },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: `${HEARTBEAT_MS}ms` },
    },
    // The worker that is cut off is the second one.
    processes: 1,
  });
  worker = await startSecondWorker(stack, far.url);
  const { temporalAddress: address } = stack;
  temporal = new Client({ connection: await Connection.connect({ address }) });
}, STACK_START_MS);
afterAll(async () => {
  await temporal?.connection.close();
  await worker?.stop();
  await stack?.stop();
  stack?.remove();
  await near?.close();
  await far?.close();
}, 60_000);
beforeEach(() => {
  near.seen.length = 0;
  far.seen.length = 0;
});

/** For lines that both workers sent: the last time of the far one until `untilMs`, and the first of the near one. */
function sentByBoth(untilMs: number): { farMs: number; nearMs: number }[] {
  const times = (seen: readonly Seen[]): Map<string, number[]> => {
    const byLine = new Map<string, number[]>();
    for (const { requestId, atMs } of seen) {
      byLine.set(requestId, [...(byLine.get(requestId) ?? []), atMs]);
    }
    return byLine;
  };
  const [there, here] = [times(far.seen.filter(({ atMs }) => atMs <= untilMs)), times(near.seen)];
  return [...there].flatMap(([line, farTimes]) => {
    const nearTimes = here.get(line);
    if (nearTimes === undefined) return [];
    return [{ farMs: Math.max(...farTimes), nearMs: Math.min(...nearTimes) }];
  });
}

/** Resolves when the other worker has sent so many requests more. */
async function further({ seen }: RecordingBackend, count: number, who: string): Promise<void> {
  const goal = seen.length + count;
  await until(() => seen.length >= goal, CUT_MS, `further requests of the ${who} worker`);
}

/** Resolves when the near worker has taken over a chunk of the far one, which sends nothing any more. */
async function takenOver(id: string): Promise<void> {
  const isTaken = async (): Promise<boolean> => {
    const { raw } = await temporal.workflow.getHandle(id).describe();
    return (raw.pendingActivities ?? []).some(({ attempt }) => (attempt ?? 0) > 1);
  };
  await until(isTaken, CUT_MS, 'a second attempt', 100);
  await until(() => far.inFlight() === 0, CUT_MS, 'the far worker to fall silent');
  await further(near, FURTHER, 'near');
}

/** Resolves when the far worker sends nothing any more and the near one goes on. */
async function goneOnWithout(): Promise<void> {
  await until(() => far.inFlight() === 0, CUT_MS, 'the far worker to fall silent');
  await further(near, 3 * FURTHER, 'near');
}

/** Resolves when the far worker has logged that it cannot write its progress, and goes on. */
async function unfenced(): Promise<void> {
  const log = join(stack.dataDir, 'logs', 'second-worker.log');
  const told = (): number => readFileSync(log, 'utf8').split('progress not written').length - 1;
  const before = told();
  await until(() => told() > before, CUT_MS, 'a word of it in the log');
  await further(far, FURTHER, 'far');
}

/** Cuts links until `hasStruck` resolves. Returns when the mending began, Unix ms. */
async function cutOff(
  links: readonly LinkName[],
  mood: ProxyMood,
  hasStruck: () => Promise<void>,
): Promise<number> {
  for (const link of links) await worker.links[link].become(mood);
  await hasStruck();
  const mendedMs = Date.now();
  for (const link of links) await worker.links[link].become('pass');
  return mendedMs;
}

/**
 * Silence towards model servers costs more: requests that hang are sent again by the attempt that takes over,
 * and so are its own requests in flight when a chunk of both is divided again.
 */
describe('a worker that is cut off', () => {
  it.each<[string, readonly LinkName[], ProxyMood, (id: string) => Promise<void>, number, number?]>(
    [
      ['from Temporal, by silence', ['temporal'], 'hang', takenOver, IN_FLIGHT],
      ['from Temporal, by refusal', ['temporal'], 'refuse', takenOver, IN_FLIGHT],
      ['from Postgres, by silence', ['postgres'], 'hang', unfenced, 0, LINES_FOR_BOTH],
      ['from its model server, by refusal', ['models'], 'refuse', goneOnWithout, IN_FLIGHT],
      [
        'from everything, by silence',
        ['temporal', 'postgres', 'models'],
        'hang',
        takenOver,
        2 * IN_FLIGHT,
      ],
    ],
  )(
    '%s: the batch completes with each line once, and only requests in flight are sent twice',
    async (_, links, mood, hasStruck, mayResend, lines = LINES) => {
      const { id } = await submit(stack.client, chatLines(lines));
      const bothAtWork = (): boolean =>
        far.seen.length > 2 * IN_FLIGHT && near.seen.length > 2 * IN_FLIGHT;
      await until(bothAtWork, 60_000, 'both workers at work');
      const mendedMs = await cutOff(links, mood, () => hasStruck(id));
      const sent = (): number => near.seen.length + far.seen.length;
      expect(sent()).toBeLessThan(lines);
      await expectCompleted(stack.client, id, { lines });

      expect(sent() - lines).toBeLessThanOrEqual(mayResend);
      // The new attempt's start is at the latest its first request for such a line.
      const twice = sentByBoth(mendedMs);
      const takenOverMs = Math.min(...twice.map(({ nearMs }) => nearMs));
      for (const { farMs } of twice) {
        expect(farMs).toBeLessThanOrEqual(takenOverMs + FENCE_MS + CLOCK_MS);
      }
    },
    180_000,
  );
});
