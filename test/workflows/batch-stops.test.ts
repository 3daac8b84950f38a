import { ApplicationFailure } from '@temporalio/activity';
import type { BatchActivities } from '../../activities/contract';
import { TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';
import {
  crash,
  FakeBatch,
  systemFailure,
  untilCancelled,
  type FakeBatchOptions,
} from './fake-batch';
import type { Scenario } from './scenarios';
import { type ScenarioPlayer, startScenarioPlayer } from './play-scenario';

/** What a stop waits for and which cause it takes (docs/design/ends.md). Every test runs a real workflow. */

const GRACE = { cancelGraceMs: 7_000, expiryGraceMs: 3_000 };
const MODEL = [{ model: 'alpha', entries: 40 }];

let player: ScenarioPlayer;

beforeAll(async () => {
  player = await startScenarioPlayer();
}, TEMPORAL_START_MS);
afterAll(() => player?.close(), 30_000);

type Change = Partial<BatchActivities>;

/** A batch that records the order of the activities that end it. */
class WatchedBatch extends FakeBatch {
  readonly order: string[] = [];
  readonly opened: string[] = [];
  readonly #change: (own: BatchActivities, batch: WatchedBatch) => Change;

  constructor(
    options: FakeBatchOptions,
    change: (own: BatchActivities, batch: WatchedBatch) => Change = () => ({}),
  ) {
    super({ models: MODEL, ...options, settings: { ...GRACE, ...options.settings } });
    this.#change = change;
  }

  override activities(): ReturnType<FakeBatch['activities']> {
    const own = super.activities();
    const watched: ReturnType<FakeBatch['activities']> = {
      ...own,
      openBatch: (input) => {
        this.opened.push(this.status);
        return own.openBatch(input);
      },
      awaitReleased: ({ graceMs }) => {
        this.order.push(`holders, grace ${graceMs}`);
        return Promise.resolve();
      },
      finalize: (input) => {
        this.order.push(`finalize ${input.cause ?? 'complete'}`);
        return own.finalize(input);
      },
    };
    return { ...watched, ...this.#change(watched, this) };
  }
}

const begun = (batch: FakeBatch) => until(() => batch.chunks.length > 0, 20_000, 'a first chunk');

/** Plays the batch to its end; `drive` acts once its first chunk runs. */
async function run(batch: WatchedBatch, drive?: NonNullable<Scenario['drive']>) {
  const driven: Scenario = {
    batch,
    ...(drive === undefined
      ? {}
      : { drive: async (handle) => (await begun(batch), drive(handle)) }),
  };
  const { result, error } = await player.play(driven);
  return { result, error };
}

/** A chunk whose worker dies during the stop, so that its progress is unknown. */
async function lostInTheStop(): Promise<never> {
  await untilCancelled();
  throw crash();
}

describe('the cause of an end', () => {
  it('is the one in the row, even if the workflow claims another one', async () => {
    const batch = new WatchedBatch({
      onChunk: (_, self) => {
        self.claim('cancelled');
        return Promise.reject(systemFailure());
      },
    });
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'cancelled' }]);
  });

  it('is taken from the row if the cancel signal comes later', async () => {
    const batch = new WatchedBatch({ onChunk: untilCancelled });
    const { result } = await run(batch, async (handle) => {
      batch.claim('expired');
      await handle.cancel();
    });
    expect(result).toMatchObject({ status: 'expired' });
    expect(batch.finalized).toEqual([{ nonce: 'n0', cause: 'expired' }]);
  });

  it('is taken from the result of a chunk that saw it before the workflow did', async () => {
    const batch = new WatchedBatch({
      onChunk: (input, self) => {
        self.claim('cancelled');
        return Promise.resolve({ next: input.from, left: 'stopped', stopCause: 'cancelled' });
      },
    });
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'cancelled', completed: 0 });
    expect(batch.chunks).toHaveLength(1);
  });
});

describe('a stop', () => {
  it('waits for chunks that did not return, with the grace of a cancel', async () => {
    const batch = new WatchedBatch({ onChunk: lostInTheStop });
    const { result } = await run(batch, (handle) => handle.signal('cancelBatch'));
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.order).toEqual(['holders, grace 7000', 'finalize cancelled']);
  });

  it('waits for chunks that did not return, with the grace of an expiry at the deadline', async () => {
    const batch = new WatchedBatch({ onChunk: lostInTheStop, expiresInMs: 1_500 });
    await run(batch);
    expect(batch.order).toEqual(['holders, grace 3000', 'finalize expired']);
  });

  it('delivers even if it is unknown whether chunks still run', async () => {
    const batch = new WatchedBatch({ onChunk: lostInTheStop }, () => ({
      awaitReleased: () =>
        Promise.reject(ApplicationFailure.create({ message: 'no', nonRetryable: true })),
    }));
    const { result } = await run(batch, (handle) => handle.signal('cancelBatch'));
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.order).toEqual(['finalize cancelled']);
  });

  it('does not wait if every chunk has returned', async () => {
    const batch = new WatchedBatch({ onChunk: untilCancelled });
    await run(batch, (handle) => handle.signal('cancelBatch'));
    expect(batch.order).toEqual(['finalize cancelled']);
  });

  it('waits for chunks of an earlier run even if its own have returned', async () => {
    const batch = new WatchedBatch({ onChunk: untilCancelled });
    batch.status = 'in_progress';
    await run(batch, (handle) => handle.signal('cancelBatch'));
    expect(batch.order).toEqual(['holders, grace 7000', 'finalize cancelled']);
  });
});

describe('a run that continues an earlier one', () => {
  it('ends at the deadline of the batch', async () => {
    // The window ends after the second run has started, even if the first one takes long.
    const batch: WatchedBatch = new WatchedBatch(
      {
        models: [{ model: 'alpha', entries: 900 }],
        ratePerSec: 5,
        settings: { historyEvents: 25 },
        onChunk: async () => {
          if (batch.opened.length > 1) await untilCancelled();
        },
      },
      (own, { opened }) => ({
        openBatch: async (input) => {
          const row = await own.openBatch(input);
          return opened.length > 1 ? { ...row, expiresAtMs: Date.now() + 500 } : row;
        },
      }),
    );
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'expired', total: 900 });
    expect(batch.opened).toEqual(['validating', 'in_progress']);
    expect(batch.order).toEqual(['holders, grace 3000', 'finalize expired']);
  });

  it('does nothing for a batch that has ended', async () => {
    const batch = new WatchedBatch({});
    batch.status = 'cancelled';
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'cancelled', total: 0 });
    expect([batch.chunks, batch.order]).toEqual([[], []]);
  });

  it('delivers what a manifest has settled, even after the deadline', async () => {
    const batch = new WatchedBatch({}, (own) => ({
      openBatch: async (input) => ({
        ...(await own.openBatch(input)),
        settled: true,
        expiresAtMs: Date.now() - 60_000,
      }),
    }));
    batch.status = 'in_progress';
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'completed' });
    expect([batch.chunks, batch.order]).toEqual([[], ['finalize complete']]);
  });

  it('sends nothing if the deadline had passed when it started, and still delivers', async () => {
    const batch = new WatchedBatch({ expiresInMs: -60_000 });
    batch.status = 'in_progress';
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'expired' });
    expect([batch.chunks, batch.order]).toEqual([[], ['holders, grace 3000', 'finalize expired']]);
  });
});

describe('an ingestion that fails without retry', () => {
  it('ends the batch as failed', async () => {
    const batch = new WatchedBatch({ onIngest: () => Promise.reject(systemFailure()) });
    const { error } = await run(batch);
    expect(error).toMatchObject({ cause: { type: 'BatchFailed' } });
    expect(batch.finalized).toEqual([{ nonce: null, cause: 'failed' }]);
  });
});

describe('unanswered ranges', () => {
  it('are not sent if a stop was claimed meanwhile', async () => {
    const batch = new WatchedBatch({
      onFinalize: (self) => {
        if (self.finalized.length > 1) return null;
        self.claim('cancelled');
        return { kind: 'holes', holes: [{ safe: 'alpha', from: 3, to: 5 }] };
      },
      onChunk: (input, self) =>
        Promise.resolve(self.finalized.length > 0 ? { next: input.from } : {}),
    });
    const { result } = await run(batch);
    expect(result).toMatchObject({ status: 'cancelled' });
    expect(batch.finalized.map(({ cause }) => cause)).toEqual([null, 'cancelled']);
  });
});
