import fc from 'fast-check';
import { Flow } from '../../../../core/dispatch/queue/flow';
import type { QueuedRequest } from '../../../../core/dispatch/queue/queued-request';
import { makeRequest } from './requests';

const STEP = fc.record({
  isPush: fc.boolean(),
  priority: fc.constantFrom(2 as const, 3 as const, 4 as const),
  pick: fc.nat(100),
});

const AGED_STEP = fc.record({
  what: fc.constantFrom('push' as const, 'insert' as const, 'remove' as const),
  priority: fc.constantFrom(2 as const, 3 as const, 3 as const, 4 as const),
  pick: fc.nat(100),
});

it('a backlog equals a list sorted by priority and arrival, whichever requests leave', () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 60, size: 'max' }), (steps) => {
      const backlog = new Flow<QueuedRequest>('t', 'm', 1);
      let model: QueuedRequest[] = [];
      let arrivals = 0;
      for (const { isPush, priority, pick } of steps) {
        const leaving = model[pick % Math.max(1, model.length)];
        if (isPush) {
          const request = makeRequest({ priority });
          request.sequence = arrivals++;
          backlog.push(request);
          model.push(request);
        } else if (leaving !== undefined) {
          backlog.remove(leaving);
          model = model.filter((one) => one !== leaving);
        }
        const sorted = [...model].sort(
          (a, b) => a.priority - b.priority || a.sequence - b.sequence,
        );
        expect(backlog.filter(() => true).map(nameOf)).toEqual(sorted.map(nameOf));
        const { head, tail, oldest, hasUrgent, size } = backlog;
        expect([head, tail, oldest].map(nameOf)).toEqual(
          [sorted[0], sorted.at(-1), model[0]].map(nameOf),
        );
        expect([size, hasUrgent]).toEqual([model.length, sorted[0]?.priority === 2]);
      }
    }),
  );
});

it('a backlog with insertions equals a list sorted by priority and age', () => {
  fc.assert(
    fc.property(fc.array(AGED_STEP, { maxLength: 80, size: 'max' }), (steps) => {
      const backlog = new Flow<QueuedRequest>('t', 'm', 1);
      let model: QueuedRequest[] = [];
      let nowMs = 1;
      let agedMs = 0;
      for (const { what, priority, pick } of steps) {
        const leaving = model[pick % Math.max(1, model.length)];
        const request = makeRequest({ priority });
        if (what === 'remove') {
          if (leaving === undefined) continue;
          backlog.remove(leaving);
          model = model.filter((one) => one !== leaving);
        } else if (what === 'push') {
          request.queuedAtMs = nowMs += 2;
          backlog.push(request);
          model.push(request);
        } else {
          // Mostly in their order, as they age, and at times of their own.
          agedMs = pick === 0 ? 0 : Math.min(nowMs, agedMs + 2 * (pick % 5));
          request.queuedAtMs = agedMs;
          backlog.insert(request, (one) => one.queuedAtMs > request.queuedAtMs);
          model.push(request);
        }
        const sorted = [...model].sort(
          (a, b) => a.priority - b.priority || a.queuedAtMs - b.queuedAtMs,
        );
        expect(backlog.filter(() => true).map(ageOf)).toEqual(sorted.map(ageOf));
        expect([backlog.head, backlog.tail].map(ageOf)).toEqual(
          [sorted[0], sorted.at(-1)].map(ageOf),
        );
      }
    }),
  );
});

function ageOf(request: QueuedRequest | null | undefined): string {
  return request == null ? 'none' : `${request.priority} ${request.queuedAtMs}`;
}

/** `head` and its kin are null if there is none, elements of a list undefined. */
function nameOf(request: QueuedRequest | null | undefined): string {
  return request == null ? 'none' : `${request.priority} ${request.sequence}`;
}
