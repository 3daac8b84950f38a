import { PRIORITY } from '../../core/chunks/priority';
import type { BatchInput } from '../../workflows/contract';
import { EXEC_QUEUE } from '../../workflows/contract';
import { FakeBatch } from './fake-batch';
import { HELD_ATTEMPTS, SCENARIOS } from './scenarios';
import { type PlayedScenario, type ScenarioPlayer, startScenarioPlayer } from './play-scenario';
import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

async function run(name: string): Promise<{ batch: FakeBatch; played: PlayedScenario }> {
  const scenario = SCENARIOS[name]?.();
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  const played = await player.play(scenario);
  return { batch: scenario.batch, played };
}

function everyLineOnce(batch: FakeBatch): void {
  const total = batch.models.reduce((sum, model) => sum + model.entries, 0);
  expect(batch.answered.size).toBe(total);
  expect(new Set(batch.answered.values())).toEqual(new Set([1]));
}

/** Timers that ended: pauses of lanes, and the deadline. */
function firedTimers({ histories }: PlayedScenario): number {
  const events = histories.flatMap((history) => history.events ?? []);
  return events.filter((event) => event.timerFiredEventAttributes != null).length;
}

/** Batches do not share state and mostly wait, so Jest runs five of them at once. */
describe('batchWorkflow', () => {
  it.concurrent('answers every line of every model once and completes', async () => {
    const { batch, played } = await run('completed');
    expect(played.result).toMatchObject({ status: 'completed', total: 320, completed: 320 });
    everyLineOnce(batch);
    expect(batch.transitions).toEqual(['validating', 'in_progress', 'finalizing', 'completed']);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: null }]);
  });

  it.concurrent('begins its lanes with chunks of different sizes', async () => {
    const { batch } = await run('staggered-chunks');
    everyLineOnce(batch);
    const first = batch.chunks.slice(0, 4).map(({ from, to }) => to - from);
    expect(first.sort((a, b) => a - b)).toEqual([188, 352, 462, 500]);
  });

  it.concurrent('has four lanes beside two for its only worker', async () => {
    const { batch } = await run('six-lanes');
    everyLineOnce(batch);
    const first = batch.chunks.slice(0, 6).map(({ from, to }) => to - from);
    expect(first.sort((a, b) => a - b)).toEqual([84, 162, 230, 281, 312, 322]);
  });

  it.concurrent('records an invalid file and fails without sending anything', async () => {
    const { batch, played } = await run('invalid-file');
    expect(played.error).toMatchObject({ cause: { type: 'BatchFailed' } });
    expect(batch.chunks).toEqual([]);
    expect(batch.transitions).toEqual(['validating', 'failed']);
    expect(batch.finalized).toEqual([{ nonce: null, cause: null }]);
  });

  it.concurrent.each(['cancel-by-signal', 'native-cancel'])(
    'delivers the answers it has when cancelled: %s',
    async (name) => {
      const { batch, played } = await run(name);
      expect(played.result).toMatchObject({ status: 'cancelled', total: 40, completed: 20 });
      expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
      expect(batch.transitions).toEqual(['validating', 'in_progress', 'cancelling', 'cancelled']);
    },
  );

  it.concurrent('finds a batch urgent only if all its chunks together are too slow', async () => {
    const atLeast = (count: number) => until(() => batch.chunks.length >= count, 20_000, 'a chunk');
    const batch: FakeBatch = new FakeBatch({
      models: [{ model: 'alpha', entries: 400 }],
      // The 144 lines after the first four chunks take 29 s in one chunk, and 7 s in four.
      ratePerSec: 5,
      expiresInMs: 40_000,
      onChunk: async (_input, { chunks }) => {
        if (chunks.length <= 4) await atLeast(chunks.length === 4 ? 4 : 5);
      },
    });
    await player.play({ batch });
    expect(batch.chunks[4]?.priority).toBe(PRIORITY.normal);
    everyLineOnce(batch);
  });

  it.concurrent('expires at its deadline with the answers it has', async () => {
    const { batch, played } = await run('expired');
    expect(played.result).toMatchObject({ status: 'expired', completed: 20 });
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'expired' }]);
  });

  it.concurrent('expires even while lanes that started late are pausing', async () => {
    const { batch, played } = await run('expired-while-pausing');
    expect(played.result).toMatchObject({ status: 'expired' });
    // Four answered chunks, then one for each of at most eight lanes, and again after each pause. If pausing lanes woke
    // each other, there would be more.
    const pauses = firedTimers(played) - 1;
    expect(batch.chunks.length).toBeGreaterThan(8);
    expect(batch.chunks.length).toBeLessThanOrEqual(4 + (1 + pauses) * 8);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'expired' }]);
  });

  it.concurrent('fails after a system failure, once the other chunks have returned', async () => {
    const { batch, played } = await run('system-failure');
    expect(played.error).toMatchObject({ cause: { type: 'BatchFailed' } });
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'failed' }]);
    expect(batch.answered.size).toBeGreaterThan(0);
  });

  it.concurrent('continues as new after a long history and loses no range', async () => {
    const { batch, played } = await run('continue-as-new');
    expect(played.result).toMatchObject({ status: 'completed', total: 900, completed: 900 });
    everyLineOnce(batch);
    expect(played.histories.length).toBeGreaterThan(1);
    // The new run knows the age of the batch.
    const [first, second] = played.histories.map(({ events }) => events?.[0]);
    const payload = second?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0]?.data;
    const input = JSON.parse(Buffer.from(payload ?? []).toString()) as BatchInput;
    const startedMs = Math.round(Number(first?.eventTime?.seconds) * 1000);
    expect(Math.floor((input.resume?.startedAtMs ?? 0) / 1000) * 1000).toBe(startedMs);
  });

  it.concurrent('derives time slices from the age of the batch, not of its run', async () => {
    const batch = new FakeBatch();
    const model = { safe: 'alpha', model: 'alpha', entries: 40, queue: EXEC_QUEUE };
    const rest = { requestTimeoutMs: 1_000, open: [{ from: 0, to: 40 }], completed: 0, failed: 0 };
    const plan = { nonce: 'n0', lineCount: 40, unroutedLines: 0, models: [{ ...model, ...rest }] };
    const startedAtMs = Date.now() - 1_000_000;
    const played = await player.play({ batch, resume: { ...plan, startedAtMs } });
    expect(played.result).toMatchObject({ status: 'completed' });
    expect(batch.chunks[0]?.boxMs).toBeGreaterThanOrEqual(100_000);
  });

  it.concurrent(
    'halves failing chunks down to the line that kills them, and ends it with an error without sending it',
    async () => {
      const { batch, played } = await run('poisoned-line');
      expect(played.result).toMatchObject({ status: 'completed' });
      expect(batch.poisoned).toEqual(['alpha/5']);
      everyLineOnce(batch);
      const attempts = (from: number, to: number): number =>
        batch.chunks.filter((chunk) => chunk.from === from && chunk.to === to).length;
      expect([attempts(0, 8), attempts(4, 8), attempts(4, 6)]).toEqual([3, 1, 1]);
      expect(
        batch.chunks
          .filter((chunk) => chunk.from === 5 && chunk.solo === true)
          .map((c) => c.poison),
      ).toEqual([undefined, undefined, undefined, true]);
    },
  );

  it.concurrent('sends again what finalization finds unanswered', async () => {
    const { batch, played } = await run('holes-in-the-journal');
    expect(played.result).toMatchObject({ status: 'completed' });
    expect(batch.chunks.at(-1)).toMatchObject({ from: 3, to: 5 });
    expect(batch.finalized).toHaveLength(2);
  });

  it.concurrent(
    'ends soon after a stop during ingestion, even if the ingestion never ends',
    async () => {
      const { batch, played } = await run('cancelled-while-ingesting');
      expect(played.result).toMatchObject({ status: 'cancelled' });
      expect(batch.finalized).toEqual([{ nonce: null, cause: 'cancelled' }]);
      expect(batch.details).toContain('stopping: **cancelled**');
    },
  );

  it.concurrent('completes if its window ends while every line is settled', async () => {
    const { batch, played } = await run('deadline-while-finalizing');
    expect(played.result).toMatchObject({ status: 'completed' });
    expect(batch.stopCause).toBeNull();
  });

  it.concurrent('expires if unanswered ranges get no answer before the deadline', async () => {
    const { batch, played } = await run('holes-until-the-deadline');
    expect(played.result).toMatchObject({ status: 'expired' });
    expect(batch.finalized.map(({ cause }) => cause)).toEqual([null, 'expired']);
  });

  it.concurrent('finalizes at once if an earlier run had found every line settled', async () => {
    const { batch, played } = await run('answered-when-opened');
    expect(played.result).toMatchObject({ status: 'completed' });
    expect(batch.chunks).toEqual([]);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: null }]);
  });

  it.concurrent('reports a queue that no worker serves, and can still be cancelled', async () => {
    const { batch, played } = await run('queue-that-nobody-serves');
    expect(batch.details).toMatch(
      /No worker takes chunks of alpha\*\* from queue `nightshift-exec.nobody` since \d{4}-/,
    );
    expect(played.result).toMatchObject({ status: 'cancelled', total: 300, completed: 0 });
    expect(batch.chunks).toEqual([]);
  });

  it.concurrent(
    'waits for a permit with one chunk at the server, without events in the history',
    async () => {
      const { batch, played } = await run('waits-for-a-permit');
      expect(played.result).toMatchObject({ status: 'completed', total: 300 });
      everyLineOnce(batch);
      // The next attempt receives the last heartbeat of a failed attempt, even a throttled one.
      expect(batch.notes).toEqual([
        null,
        { deaths: 0, holding: false },
        { deaths: 1, holding: true },
      ]);
      const waited = batch.chunks.filter(({ mayWait }) => mayWait === true);
      expect(new Set(waited.map(({ from, to }) => `${from}-${to}`)).size).toBe(1);
      expect(waited[0]).toMatchObject({ mayWait: true, maxDeaths: 3, reroutes: true });
      const scheduled = (played.histories[0]?.events ?? []).filter(
        (event) =>
          event.activityTaskScheduledEventAttributes?.activityType?.name === 'executeChunk',
      );
      expect(scheduled).toHaveLength(batch.chunks.length - 3);
      // The other lanes run the remaining lines.
      const rest = batch.chunks.slice(batch.chunks.findLastIndex(({ mayWait }) => mayWait) + 1);
      expect(rest.length).toBeGreaterThan(1);
    },
  );

  it.concurrent('costs fewer than 100 events an hour while a gateway holds it', async () => {
    const { batch, played } = await run('held-by-a-gateway');
    expect(played.result).toMatchObject({ status: 'completed', total: 300 });
    everyLineOnce(batch);
    const events = played.histories[0]?.events ?? [];
    const scheduled = events.flatMap(({ activityTaskScheduledEventAttributes: one }) =>
      one?.activityType?.name === 'executeChunk' ? [one] : [],
    );
    expect(scheduled).toHaveLength(batch.chunks.length - HELD_ATTEMPTS);
    // Each attempt of the waiting chunk may last half an hour, so these are the events of three hours.
    const waiting = scheduled[batch.chunks.findIndex(({ mayWait }) => mayWait === true)];
    expect(Number(waiting?.startToCloseTimeout?.seconds)).toBe(30 * 60 + 91);
    const firstAnswer = events.findIndex(
      ({ activityTaskStartedEventAttributes: one }) => one?.attempt === HELD_ATTEMPTS + 1,
    );
    expect(firstAnswer).toBeGreaterThan(0);
    expect(firstAnswer).toBeLessThan(100);
  });

  it.concurrent(
    'takes chunks back from a queue that is no longer served, and waits for a route',
    async () => {
      const { batch, played } = await run('routed-again');
      expect(batch.details).toMatch(/No worker can send requests of alpha\*\* since \d{4}-.* UTC/);
      expect(played.result).toMatchObject({ status: 'completed', total: 300, completed: 300 });
      everyLineOnce(batch);
    },
  );

  it.concurrent(
    'looks up models without a route again when all other lines are settled',
    async () => {
      const { batch, played } = await run('routed-at-last');
      expect(played.result).toMatchObject({ status: 'completed', total: 12_080 });
      everyLineOnce(batch);
      const ended = batch.ended.map(({ model, from, to }) => [model, from, to]);
      expect(ended).toEqual([
        ['never', 0, 10_000],
        ['never', 10_000, 12_000],
      ]);
      const [first, ...others] = batch.chunks.map(({ model }) => model);
      expect([first, ...new Set(others)]).toEqual(['alpha', 'late']);
      expect(batch.finalized).toEqual([{ nonce: 'n0', cause: null }]);
    },
  );

  it.concurrent('gives up models without a route, even if that takes several runs', async () => {
    const { batch, played } = await run('unrouted-continued');
    expect(played.result).toMatchObject({ status: 'completed', total: 25_000 });
    expect(played.histories.length).toBeGreaterThan(1);
    everyLineOnce(batch);
    expect(batch.chunks).toEqual([]);
  });

  it.concurrent('leaves models without a route undecided if a stop comes first', async () => {
    const { batch, played } = await run('cancelled-before-it-is-decided');
    expect(played.result).toMatchObject({ status: 'cancelled', total: 40 });
    expect(batch.ended).toEqual([]);
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
  });

  it.concurrent(
    'still ingests a batch that is cancelled while validating, and sends nothing',
    async () => {
      const { batch, played } = await run('cancelled-while-validating');
      expect(played.result).toMatchObject({ status: 'cancelled', total: 40, completed: 0 });
      expect(batch.chunks).toEqual([]);
      expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
    },
  );
});
