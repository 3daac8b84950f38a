import fc from 'fast-check';
import { createMemoryBudget, type Reservation } from '../../inference/memory-budget';

const KIB = 1024;
const ROOM = 256 * KIB;
const settle = () => new Promise((resolve) => setImmediate(resolve));

async function isHeld(wait: Promise<void> | undefined): Promise<boolean> {
  let held = wait !== undefined;
  void wait?.then(() => (held = false));
  await settle();
  return held;
}

describe('a memory reservation', () => {
  it('takes the body and 256 KiB, and waits in order until both fit', async () => {
    const budget = createMemoryBudget(2 * ROOM + 100);
    const first = budget.tryReserve(50)!;
    const second = budget.tryReserve(50)!;
    expect(budget.stats()).toEqual({
      usedBytes: 2 * ROOM + 100,
      limitBytes: 2 * ROOM + 100,
      waiting: 0,
    });
    const order: string[] = [];
    const third = budget.reserve(51).then((r) => (order.push('third'), r));
    const fourth = budget.reserve(0).then((r) => (order.push('fourth'), r));
    first.release();
    await settle();
    // The fourth reservation would fit, but it must not overtake the third.
    expect(order).toEqual([]);
    expect(budget.tryReserve(0)).toBeNull();
    second.release();
    await settle();
    expect(order).toEqual(['third', 'fourth']);
    (await third).release();
    (await fourth).release();
    (await fourth).release();
    expect(budget.stats()).toMatchObject({ usedBytes: 0, waiting: 0 });
  });

  it('is granted alone if it is larger than the whole budget', async () => {
    const budget = createMemoryBudget(1_000_000);
    const small = budget.tryReserve(10)!;
    expect(budget.tryReserve(5_000_000)).toBeNull();
    const large = budget.reserve(5_000_000);
    small.release();
    const alone = await large;
    expect(budget.tryReserve(0)).toBeNull();
    alone.release();
    expect(budget.tryReserve(0)).not.toBeNull();
  });

  it('is granted to the next waiter when one before it aborts', async () => {
    const budget = createMemoryBudget(ROOM * 2);
    const held = budget.tryReserve(0)!;
    const controller = new AbortController();
    const large = budget.reserve(10_000_000, controller.signal);
    const small = budget.reserve(0);
    controller.abort();
    await expect(large).rejects.toMatchObject({ name: 'AbortError' });
    (await small).release();
    await expect(budget.reserve(0, controller.signal)).rejects.toMatchObject({
      name: 'AbortError',
    });
    held.release();
    expect(budget.stats()).toMatchObject({ usedBytes: 0, waiting: 0 });
  });
});

describe('answers that grow', () => {
  it('use their reserved room first and then the rest of the budget', () => {
    const budget = createMemoryBudget(ROOM * 4);
    const reservation = budget.tryReserve(0)!;
    expect(reservation.grow(ROOM)).toBeUndefined();
    expect(budget.stats().usedBytes).toBe(ROOM);
    expect(reservation.grow(100)).toBeUndefined();
    expect(budget.stats().usedBytes).toBe(ROOM + 100);
    reservation.release();
    expect(budget.stats().usedBytes).toBe(0);
    expect(reservation.grow(100)).toBeUndefined();
    expect(budget.stats().usedBytes).toBe(0);
  });

  it('stop being read when the budget is used up, except for the oldest', async () => {
    const budget = createMemoryBudget(ROOM * 3);
    const [oldest, middle, youngest] = [0, 0, 0].map((bytes) => budget.tryReserve(bytes)!);
    expect(oldest!.grow(ROOM + KIB)).toBeUndefined();
    const middleWaits = middle!.grow(ROOM + KIB);
    const youngestWaits = youngest!.grow(ROOM + KIB);
    expect(oldest!.grow(10 * ROOM)).toBeUndefined();
    expect(await isHeld(middleWaits)).toBe(true);
    youngest!.release();
    expect(await isHeld(youngestWaits)).toBe(false);
    expect(await isHeld(middleWaits)).toBe(true);
    oldest!.release();
    expect(await isHeld(middleWaits)).toBe(false);
    middle!.release();
    expect(budget.stats().usedBytes).toBe(0);
  });

  it('continue before new reservations, only as many at once as fit', async () => {
    const budget = createMemoryBudget(ROOM * 4);
    const [first, second, third, other] = [0, 0, 0, 0].map((bytes) => budget.tryReserve(bytes)!);
    void first!.grow(ROOM + 98 * KIB);
    const secondWaits = second!.grow(ROOM + 1);
    const thirdWaits = third!.grow(ROOM + 1);
    const newcomer = budget.reserve(0);
    other!.release();
    expect(await isHeld(secondWaits)).toBe(false);
    // The limit allows two readers to add 64 KiB each, but not a third one.
    expect(await isHeld(thirdWaits)).toBe(true);
    expect(budget.stats().waiting).toBe(1);
    second!.release();
    expect(await isHeld(thirdWaits)).toBe(false);
    for (const reservation of [first, third]) reservation!.release();
    (await newcomer).release();
  });
});

it('uses nothing and has no waiter after any history, and always lets one reader continue', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('reserve' as const), bytes: fc.nat(3_000_000) }),
    fc.record({ do: fc.constant('grow' as const), pick: fc.nat(), bytes: fc.nat(600_000) }),
    fc.record({ do: fc.constant('release' as const), pick: fc.nat() }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
      const budget = createMemoryBudget(2_000_000);
      const live: { reservation: Reservation; held: boolean }[] = [];
      const pending: Promise<unknown>[] = [];
      for (const action of steps) {
        if (action.do === 'reserve') {
          const wait = budget.reserve(action.bytes);
          pending.push(wait.then((reservation) => live.push({ reservation, held: false })));
        } else if (live.length > 0) {
          const entry = live[action.pick % live.length]!;
          if (action.do === 'release') {
            live.splice(live.indexOf(entry), 1);
            entry.reservation.release();
          } else if (!entry.held) {
            const wait = entry.reservation.grow(action.bytes);
            entry.held = wait !== undefined;
            void wait?.then(() => (entry.held = false));
          }
        }
        await settle();
        const { usedBytes, limitBytes, waiting } = budget.stats();
        if (live.length === 0) expect([usedBytes, waiting]).toEqual([0, 0]);
        if (live.length > 0) expect(live.some(({ held }) => !held)).toBe(true);
        expect(limitBytes).toBe(2_000_000);
      }
      for (let i = 0; i < 200 && live.length > 0; i++) {
        live.shift()!.reservation.release();
        await settle();
      }
      await Promise.all(pending);
      expect(budget.stats()).toMatchObject({ usedBytes: 0, waiting: 0 });
    }),
    { numRuns: 80 },
  );
});
