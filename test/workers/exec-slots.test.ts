import type { SlotPermit } from '@temporalio/worker';
import { ExecSlots } from '../../workers/exec-slots';

/** A Temporal worker as the slots see it: it reserves, polls, and runs what it gets. */
class Poller {
  readonly queue: string;
  readonly #slots: ExecSlots;
  readonly open: SlotPermit[] = [];
  readonly running: SlotPermit[] = [];

  constructor(slots: ExecSlots, queue: string) {
    this.#slots = slots;
    this.queue = queue;
  }

  poll(signal = new AbortController().signal): Promise<void> {
    const reserved = this.#slots.reserveSlot({ taskQueue: this.queue }, signal);
    return reserved.then((slot) => void this.open.push(slot));
  }

  getTask(): void {
    const permit = this.open.shift();
    if (permit === undefined) throw new Error(`no poll of ${this.queue} is open`);
    this.#slots.markSlotUsed({ permit });
    this.running.push(permit);
  }

  pollEndsEmpty(): void {
    this.#slots.releaseSlot({ permit: this.open.shift() ?? {} });
  }

  endTask(): void {
    this.#slots.releaseSlot({ permit: this.running.shift() ?? {} });
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

it('runs no more chunks than the limit from one queue', async () => {
  const slots = new ExecSlots(3);
  const only = new Poller(slots, 'a');
  for (let i = 0; i < 5; i++) void only.poll();
  await settled();
  expect(only.open).toHaveLength(3);
  for (let i = 0; i < 3; i++) only.getTask();
  await settled();
  expect(only.open).toHaveLength(0);
  only.endTask();
  await settled();
  expect(only.open).toHaveLength(1);
  expect(slots.used).toBe(2);
});

it('lets every queue poll although the open polls of others have taken all slots', async () => {
  const slots = new ExecSlots(2);
  const queues = ['a', 'b', 'c', 'd'].map((name) => new Poller(slots, name));
  for (const queue of queues) void queue.poll();
  await settled();
  expect(queues.map(({ open }) => open.length)).toEqual([1, 1, 1, 1]);
});

it('starts no poll while the limit of running chunks is reached, in whatever queue they run', async () => {
  const slots = new ExecSlots(2);
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new Poller(slots, name)) as [
    Poller,
    Poller,
    Poller,
  ];
  void a.poll();
  void b.poll();
  await settled();
  a.getTask();
  b.getTask();
  void c.poll();
  await settled();
  expect(c.open).toHaveLength(0);
  expect(slots.tryReserveSlot({ taskQueue: 'c' })).toBeNull();
  a.endTask();
  await settled();
  expect(c.open).toHaveLength(1);
});

it('runs at most one chunk more than the limit for each further queue, in any order of events', async () => {
  let seed = 7;
  const random = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
  for (const [limit, count] of [
    [1, 1],
    [3, 1],
    [1, 4],
    [5, 3],
    [20, 6],
  ] as const) {
    const slots = new ExecSlots(limit);
    const queues = Array.from({ length: count }, (_, i) => new Poller(slots, `q${i}`));
    for (let step = 0; step < 2_000; step++) {
      const queue = queues[random(count)];
      const action = random(5);
      if (queue === undefined) continue;
      if (action <= 1) void queue.poll();
      else if (action === 2 && queue.open.length > 0) queue.getTask();
      else if (action === 3 && queue.open.length > 0) queue.pollEndsEmpty();
      else if (queue.running.length > 0) queue.endTask();
      if (step % 7 === 0) await settled();
      expect(slots.used).toBeLessThanOrEqual(limit + count - 1);
    }
  }
});

it('forgets a poll that is given up, and counts no slot twice', async () => {
  const slots = new ExecSlots(1);
  const [a, b] = [new Poller(slots, 'a'), new Poller(slots, 'a')];
  await a.poll();
  const shutdown = new AbortController();
  const waiting = b.poll(shutdown.signal);
  shutdown.abort(new Error('shutting down'));
  await expect(waiting).rejects.toThrow('shutting down');
  const [permit] = a.open as [SlotPermit];
  slots.markSlotUsed({ permit });
  slots.markSlotUsed({ permit });
  expect(slots.used).toBe(1);
  slots.releaseSlot({ permit });
  slots.releaseSlot({ permit });
  slots.releaseSlot({ permit: {} });
  expect(slots.used).toBe(0);
});
