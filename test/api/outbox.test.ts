import pino from 'pino';
import { createOutbox, type Outbox, type OutboxOptions } from '../../api/outbox';
import type { BatchToStart } from '../../storage/postgres/batches/types';

/** Starts and cancels that Temporal does not accept at once, on fake timers. */

const NOW_MS = 1_700_000_000_000;

class World {
  readonly started: string[] = [];
  readonly marked: string[] = [];
  readonly cancelled: string[] = [];
  readonly lookedUp: number[] = [];
  /** Rows without a workflow. */
  waiting: BatchToStart[] = [];
  temporal: 'answers' | 'fails' | 'hangs' = 'answers';
  postgresFails = false;
  /** Whether the workflow of a cancelled batch has not received the signal. */
  awaitsCancel = true;
  endHang: () => void = () => undefined;

  options(): OutboxOptions {
    return {
      logger: pino({ level: 'silent' }),
      nowMs: () => NOW_MS,
      batchWorkflows: {
        start: async ({ id }) => {
          this.started.push(id);
          await this.#answer();
        },
        cancel: async (id) => {
          this.cancelled.push(id);
          await this.#answer();
        },
      },
      batches: {
        markStarted: async (id) => void this.marked.push(id),
        unstarted: async (createdBeforeSec) => {
          this.lookedUp.push(createdBeforeSec);
          if (this.postgresFails) throw new Error('no database');
          return this.waiting;
        },
        awaitsCancelSignal: async () => {
          if (this.postgresFails) throw new Error('no database');
          return this.awaitsCancel;
        },
      },
    };
  }

  async #answer(): Promise<void> {
    if (this.temporal === 'hangs') await new Promise<void>((end) => (this.endHang = end));
    if (this.temporal === 'fails') throw new Error('no server');
  }
}

const batch = (id: string): BatchToStart => {
  return { id, tenant: 't', endpoint: '/v1/embeddings', inputFileId: 'file-x', expiresAtSec: 1 };
};

let world: World;
let outbox: Outbox;

beforeEach(() => {
  jest.useFakeTimers();
  world = new World();
  outbox = createOutbox(world.options());
});
afterEach(async () => {
  world.endHang();
  await outbox.close();
  jest.useRealTimers();
});

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

describe('the start of a workflow', () => {
  it('is recorded in the row after it has succeeded, and not before', async () => {
    world.temporal = 'fails';
    await outbox.start(batch('a'));
    expect([world.started, world.marked]).toEqual([['a'], []]);
    world.temporal = 'answers';
    await pass(1_000);
    expect([world.started, world.marked]).toEqual([['a', 'a'], ['a']]);
    await pass(60_000);
    expect(world.started).toEqual(['a', 'a']);
  });

  it('that fails is tried again after 1, 5 and 15 s', async () => {
    world.temporal = 'fails';
    await outbox.start(batch('a'));
    for (const [afterMs, tries] of [
      [999, 1],
      [1, 2],
      [4_999, 2],
      [1, 3],
      [14_999, 3],
      [1, 4],
      [600_000, 4],
    ] as const) {
      await pass(afterMs);
      expect([afterMs, world.started.length]).toEqual([afterMs, tries]);
    }
  });

  it('that hangs delays its request by 2 s at most, and still counts when it succeeds', async () => {
    world.temporal = 'hangs';
    let isAnswered = false;
    const started = outbox.start(batch('a')).then(() => (isAnswered = true));
    await pass(1_999);
    expect(isAnswered).toBe(false);
    await pass(1);
    await started;
    expect(world.marked).toEqual([]);
    world.endHang();
    await pass(0);
    expect(world.marked).toEqual(['a']);
  });
});

describe('rows without a workflow', () => {
  it('are started every 15 s, when they are 15 s old', async () => {
    await pass(15_000);
    world.waiting = [batch('a'), batch('b')];
    await pass(15_000);
    expect(world.lookedUp).toEqual(Array(2).fill(NOW_MS / 1000 - 15));
    expect([world.started, world.marked]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('wait for the next pass if Temporal does not answer for the first of them', async () => {
    world.waiting = [batch('a'), batch('b')];
    world.temporal = 'fails';
    await pass(15_000);
    expect(world.started).toEqual(['a']);
    world.temporal = 'answers';
    await pass(15_000);
    expect(world.marked).toEqual(['a', 'b']);
  });

  it('are looked up again after PostgreSQL was down', async () => {
    world.waiting = [batch('a')];
    world.postgresFails = true;
    await pass(15_000);
    world.postgresFails = false;
    await pass(15_000);
    expect(world.marked).toEqual(['a']);
  });

  it('are started by one pass at a time', async () => {
    world.waiting = [batch('a')];
    world.temporal = 'hangs';
    await pass(45_000);
    expect(world.started).toEqual(['a']);
  });
});

describe('a claimed cancel', () => {
  it('is signalled at once, and after 1, 5 and 15 s until the workflow has received it', async () => {
    outbox.signalCancel('a');
    for (const [afterMs, signals] of [
      [0, 1],
      [1_000, 2],
      [4_000, 3],
      [10_000, 4],
      [600_000, 4],
    ] as const) {
      await pass(afterMs);
      expect([afterMs, world.cancelled.length]).toEqual([afterMs, signals]);
    }
  });

  it('is not signalled again after the workflow has received it', async () => {
    outbox.signalCancel('a');
    await pass(1_000);
    world.awaitsCancel = false;
    await pass(60_000);
    expect(world.cancelled).toHaveLength(2);
  });

  it('is signalled again if it is unknown whether the workflow has received it', async () => {
    world.postgresFails = true;
    outbox.signalCancel('a');
    await pass(1_000);
    expect(world.cancelled).toHaveLength(2);
  });
});

describe('an outbox that closes', () => {
  it('starts and signals nothing more', async () => {
    world.temporal = 'fails';
    world.waiting = [batch('b')];
    await outbox.start(batch('a'));
    outbox.signalCancel('a');
    await outbox.close();
    await pass(600_000);
    expect([world.started, world.cancelled, world.lookedUp]).toEqual([['a'], ['a'], []]);
  });

  it('waits for a start that is under way, and does not try it again', async () => {
    world.temporal = 'hangs';
    const started = outbox.start(batch('a'));
    await pass(2_000);
    await started;
    let isClosed = false;
    const closed = outbox.close().then(() => (isClosed = true));
    await pass(60_000);
    expect(isClosed).toBe(false);
    world.temporal = 'fails';
    world.endHang();
    await closed;
    await pass(60_000);
    expect([world.started, world.marked]).toEqual([['a'], []]);
  });
});
