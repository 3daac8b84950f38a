import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import type { BatchResume } from '../../workflows/contract';
import type { BatchStart } from '../../client/batch-workflows';
import { CANCEL_SIGNAL, EXEC_QUEUE } from '../../workflows/contract';
import { until } from '../support/until';
import { detailsOf } from './details-of';
import { FakeDelegation } from './fake-delegation';
import { crash, FakeBatch, systemFailure, untilCancelled, waitOrDie } from './fake-batch';
import { ANNOUNCED_SCENARIOS } from './announced-scenarios';
import { expiredWhilePausing } from './pausing-lanes';
import { LAST_SCENARIOS } from './last-scenarios';
import { SMALL_SCENARIOS } from './small-scenarios';

export interface Scenario {
  readonly batch: FakeBatch;
  /** Starts the workflow as a later run of its batch. */
  readonly resume?: BatchResume;
  /** The data with which the API starts the workflow. If missing, it is started with its id alone. */
  readonly start?: Omit<BatchStart, 'id'>;
  /** Signals or cancels the running workflow. */
  readonly drive?: (handle: WorkflowHandle) => Promise<void>;
}

/** How often the waiting chunk of `held-by-a-gateway` finds that nothing is served. */
export const HELD_ATTEMPTS = 6;
const running = (batch: FakeBatch) => until(() => batch.chunks.length > 0, 20_000, 'a first chunk');
const alpha = (entries: number) => ({ model: 'alpha', entries });

/**
 * Every course that a batch can take, each with a new {@link FakeBatch}. The workflow tests play them on a
 * real server. Each was recorded once for the replay tests, under the same name.
 */
export const SCENARIOS: Readonly<Record<string, () => Scenario>> = {
  completed: () => ({
    batch: new FakeBatch({ models: [alpha(300), { model: 'beta', entries: 20 }] }),
  }),
  // Several lanes, whose first chunks have different sizes.
  'staggered-chunks': () => ({ batch: new FakeBatch({ models: [alpha(3_000)] }) }),
  // One worker, as many lanes as the rule allows.
  'six-lanes': () => ({
    batch: new FakeBatch({ models: [alpha(3_000)], settings: { lanesPerModel: 32 } }),
  }),
  'invalid-file': () => ({ batch: new FakeBatch({ invalid: true }) }),
  'cancel-by-signal': () => {
    const batch = new FakeBatch({ onChunk: untilCancelled });
    return {
      batch,
      drive: async (handle) => {
        await running(batch);
        await Promise.all([handle.signal(CANCEL_SIGNAL), handle.signal(CANCEL_SIGNAL)]);
      },
    };
  },
  'native-cancel': () => {
    const batch = new FakeBatch({ onChunk: untilCancelled });
    return {
      batch,
      drive: async (handle) => {
        await running(batch);
        await handle.cancel();
      },
    };
  },
  expired: () => ({ batch: new FakeBatch({ expiresInMs: 3_000, onChunk: untilCancelled }) }),
  'expired-while-pausing': expiredWhilePausing,
  'system-failure': () => ({
    batch: new FakeBatch({
      onChunk: (input) => (input.from === 0 ? Promise.reject(systemFailure()) : untilCancelled()),
      models: [{ model: 'alpha', entries: 300 }],
    }),
  }),
  'continue-as-new': () => ({
    batch: new FakeBatch({
      models: [{ model: 'alpha', entries: 900 }],
      settings: { historyEvents: 25 },
      ratePerSec: 5,
    }),
  }),
  'poisoned-line': () => ({
    batch: new FakeBatch({
      models: [{ model: 'alpha', entries: 8 }],
      onChunk: (input) =>
        input.poison !== true && input.from <= 5 && input.to > 5
          ? Promise.reject(crash())
          : Promise.resolve(),
    }),
  }),
  // Enough lines for four lanes. The first chunk has a short time slice, so it is overdue first.
  'queue-that-nobody-serves': () => {
    const batch: FakeBatch = new FakeBatch({
      models: [{ model: 'alpha', entries: 300 }],
      settings: { queuedWarningMs: 1_000 },
      queue: `${EXEC_QUEUE}.nobody`,
    });
    return {
      batch,
      drive: async (handle) => {
        batch.details = await until(
          async () => {
            const details = await detailsOf(handle);
            return details.includes('No worker takes') ? details : null;
          },
          20_000,
          'the warning',
          250,
        );
        await handle.cancel();
      },
    };
  },
  // No lane gets a permit. One chunk waits for all four lanes, which go on when it has one.
  'waits-for-a-permit': () => ({
    batch: new FakeBatch({
      models: [{ model: 'alpha', entries: 300 }],
      settings: { queuedWarningMs: 60_000 },
      // Small chunks, so that the waiting one leaves lines for the other lanes.
      ratePerSec: 1,
      onChunk: (input, batch) => {
        if (batch.notes.length === 3) return Promise.resolve();
        if (input.mayWait === true) waitOrDie(batch, batch.notes.length === 1);
        return Promise.resolve({ next: input.from, left: 'no_permit' });
      },
    }),
  }),
  // A gateway holds all requests. One chunk waits for all four lanes, and its first six attempts leave as held.
  'held-by-a-gateway': () => ({
    batch: new FakeBatch({
      models: [{ model: 'alpha', entries: 300 }],
      settings: { queuedWarningMs: 60_000 },
      ratePerSec: 1,
      onChunk: (input, batch) => {
        if (batch.notes.length === HELD_ATTEMPTS) return Promise.resolve();
        if (input.mayWait === true) waitOrDie(batch, false, 'held');
        return Promise.resolve({ next: input.from, left: 'held' });
      },
    }),
  }),
  // Planned for a queue that is no longer served. Then no worker has a gateway for the model for a while.
  'routed-again': () => {
    const batch: FakeBatch = new FakeBatch({
      models: [{ model: 'alpha', entries: 300 }],
      settings: { queuedWarningMs: 1_000 },
      queue: `${EXEC_QUEUE}.gone`,
      routeOf: ({ routeLookUps }) =>
        routeLookUps < 4 ? null : { queue: EXEC_QUEUE, requestTimeoutMs: 1_000 },
    });
    return {
      batch,
      drive: async (handle) => {
        batch.details = await until(
          async () => {
            const details = await detailsOf(handle);
            return details.includes('No worker can send') ? details : null;
          },
          20_000,
          'the model without a worker',
          100,
        );
      },
    };
  },
  // Two models without a route. One has a route when all other lines are settled; the other is given up.
  'routed-at-last': () => ({
    batch: new FakeBatch({
      models: [
        { model: 'alpha', entries: 40 },
        { model: 'late', entries: 40 },
        { model: 'never', entries: 12_000 },
      ],
      undecided: ['late', 'never'],
      routedLater: ({ model }) => model === 'late',
    }),
  }),
  // The history is too long after the first range, so the next run gives up the others.
  'unrouted-continued': () => ({
    batch: new FakeBatch({
      models: [{ model: 'never', entries: 25_000 }],
      undecided: ['never'],
      settings: { historyEvents: 12 },
    }),
  }),
  'cancelled-before-it-is-decided': () => {
    let asked = false;
    const batch: FakeBatch = new FakeBatch({
      models: [{ model: 'never', entries: 40 }],
      undecided: ['never'],
      // Like the real activity while PostgreSQL does not answer.
      routedLater: () => {
        asked = true;
        return Promise.reject(new Error('away'));
      },
    });
    return {
      batch,
      drive: async (handle) => {
        await until(() => asked, 20_000, 'the question');
        await handle.signal(CANCEL_SIGNAL);
      },
    };
  },
  'holes-in-the-journal': () => ({
    batch: new FakeBatch({
      onFinalize: (batch) =>
        batch.finalized.length === 1
          ? { kind: 'holes', holes: [{ safe: 'alpha', from: 3, to: 5 }] }
          : null,
    }),
  }),
  'cancelled-while-validating': () => {
    const batch: FakeBatch = new FakeBatch({
      onIngest: async (self) => {
        await until(() => self.stopCause !== null, 20_000, 'the cancel to be claimed');
      },
    });
    return { batch, drive: (handle) => handle.signal(CANCEL_SIGNAL) };
  },
  // The worker never returns from the ingestion, and the stop does not wait for it.
  'cancelled-while-ingesting': () => {
    let ingesting = false;
    const batch: FakeBatch = new FakeBatch({
      onIngest: async (self) => {
        ingesting = true;
        await until(() => self.finalized.length > 0, 60_000, 'an end that does not wait for it');
      },
      // The batch must not end before the test has read the details of the stop.
      onFinalize: async (self) => {
        await until(() => self.details !== '', 20_000, 'a look at the details');
        return null;
      },
    });
    return {
      batch,
      drive: async (handle) => {
        await until(() => ingesting, 20_000, 'the ingestion');
        await handle.signal(CANCEL_SIGNAL);
        batch.details = await until(
          async () => {
            const details = await detailsOf(handle);
            return details.includes('stopping') ? details : null;
          },
          20_000,
          'the stop',
          100,
        );
      },
    };
  },
  // A batch whose lines are all settled cannot expire.
  'deadline-while-finalizing': () => ({
    batch: new FakeBatch({
      expiresInMs: 3_000,
      onFinalize: async (batch) => {
        await until(() => Date.now() > batch.expiresAtMs + 500, 20_000, 'the deadline', 50);
        return null;
      },
    }),
  }),
  'holes-until-the-deadline': () => ({
    batch: new FakeBatch({
      expiresInMs: 4_000,
      onChunk: (_input, batch) =>
        batch.finalized.length > 0 ? untilCancelled() : Promise.resolve(),
      onFinalize: (batch) =>
        batch.finalized.length === 1
          ? { kind: 'holes', holes: [{ safe: 'alpha', from: 3, to: 5 }] }
          : null,
    }),
  }),
  // An earlier run was lost while it wrote the manifest. Meanwhile the window has ended.
  'answered-when-opened': () => ({
    batch: new FakeBatch({ answered: true, expiresInMs: -1_000 }),
  }),
  // Two generations of jobs at a provider; what is left ends with error codes. Another model runs beside it.
  delegated: () => ({
    batch: new FakeBatch({
      models: [
        { model: 'far', entries: 30 },
        { model: 'near', entries: 20 },
      ],
      delegated: {
        far: new FakeDelegation({
          maxLines: 10,
          looks: 3,
          isMissing: (position, generation) => position > 24 && (generation < 1 || position > 27),
        }),
      },
    }),
  }),
  // What two generations leave runs at the gateway; the first part is cut by staging.
  'delegated-with-a-fallback': () => ({
    batch: new FakeBatch({
      models: [{ model: 'far', entries: 30 }],
      delegated: {
        far: new FakeDelegation({
          fallback: true,
          stagedTo: ({ job }) => Math.min(job.to, job.from + 20),
          isMissing: (position) => position % 7 === 0,
        }),
      },
    }),
  }),
  // Jobs of one line run as few parts, and the namespace has the attribute that came later.
  'delegated-in-groups': () => ({
    batch: new FakeBatch({
      models: [{ model: 'far', entries: 12 }],
      showsProviders: true,
      delegated: {
        far: new FakeDelegation({
          maxLines: 1,
          jobsPerPart: 4,
          looks: 2,
          isMissing: (position, generation) => position === 7 && generation < 1,
        }),
      },
    }),
  }),
  // Staging cuts a part, so that more jobs are opened beside the first ones, which run on.
  'delegated-and-cut': () => ({
    batch: new FakeBatch({
      models: [{ model: 'far', entries: 60 }],
      delegated: {
        far: new FakeDelegation({
          maxLines: 20,
          looks: 3,
          stagedTo: ({ job }) => Math.min(job.to, job.from + 12),
        }),
      },
    }),
  }),
  // A job of the second generation spans lines that the first one has answered.
  'delegated-around-answers': () => ({
    batch: new FakeBatch({
      models: [{ model: 'far', entries: 30 }],
      delegated: {
        far: new FakeDelegation({
          maxLines: 10,
          isMissing: (at, generation) => generation < 1 && (at === 5 || at === 28),
        }),
      },
    }),
  }),
  // No worker serves the provider: the wait ends a minute after the last chance.
  'delegated-and-unserved': () => ({
    batch: new FakeBatch({
      models: [{ model: 'far', entries: 30 }],
      delegated: { far: new FakeDelegation({ fallback: true, isUnserved: true }) },
    }),
  }),
  'delegated-and-cancelled': () => {
    const provider = new FakeDelegation({ looks: Infinity, isMissing: (at) => at % 2 === 0 });
    const models = [{ model: 'far', entries: 30 }];
    return {
      batch: new FakeBatch({ models, delegated: { far: provider } }),
      drive: async (handle) => {
        await until(() => provider.watched.length > 1, 20_000, 'a job that is watched');
        await handle.signal(CANCEL_SIGNAL);
      },
    };
  },
  'delegated-continued': () => {
    const runs = new Set<string>();
    const provider: FakeDelegation = new FakeDelegation({
      looks: Infinity,
      onWatch: async () => {
        runs.add(Context.current().info.workflowExecution?.runId ?? '');
        if (runs.size > 1) provider.finish();
      },
    });
    return {
      batch: new FakeBatch({
        models: [
          { model: 'far', entries: 30 },
          { model: 'near', entries: 900 },
        ],
        delegated: { far: provider },
        ratePerSec: 5,
        settings: { historyEvents: 40 },
        onChunk: async () => {
          await until(() => runs.size > 0, 20_000, 'a job that is watched');
        },
      }),
    };
  },
  ...SMALL_SCENARIOS,
  ...ANNOUNCED_SCENARIOS,
  ...LAST_SCENARIOS,
};
