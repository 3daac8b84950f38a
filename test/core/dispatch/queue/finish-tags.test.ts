import fc from 'fast-check';
import { FairRequestQueue } from '../../../../core/dispatch/queue/fair-request-queue';
import type { QueuedRequest } from '../../../../core/dispatch/queue/queued-request';
import { makeRequest } from './requests';

const TENANTS = ['a', 'b', 'c', 'd'];
const WEIGHTS: Record<string, number> = { a: 1, b: 1, c: 3, d: 0.5 };

/**
 * The queue as its first description defines it, transcribed word by word: a tag on arrival, and the least
 * tag first. It searches all requests, so it shares no data structure with the product.
 */
class Transcription {
  #virtualTime = 0;
  readonly #lastVirFinishTime = new Map<string, number>();
  readonly #queued: { request: QueuedRequest; virFinishTime: number; arrival: number }[] = [];
  #arrivals = 0;

  push(request: QueuedRequest): void {
    const last = this.#lastVirFinishTime.get(request.tenant) ?? 0;
    const requestSize = request.cost / WEIGHTS[request.tenant]!;
    const virFinishTime = Math.max(this.#virtualTime, last) + requestSize;
    this.#lastVirFinishTime.set(request.tenant, virFinishTime);
    this.#queued.push({ request, virFinishTime, arrival: this.#arrivals++ });
  }

  pop(): QueuedRequest | null {
    this.#queued.sort((x, y) => x.virFinishTime - y.virFinishTime || x.arrival - y.arrival);
    const next = this.#queued.shift();
    if (next === undefined) return null;
    this.#virtualTime = next.virFinishTime;
    return next.request;
  }

  remove(request: QueuedRequest): void {
    const at = this.#queued.findIndex((one) => one.request === request);
    if (at !== -1) this.#queued.splice(at, 1);
  }
}

it('the scheduler with finish tags orders requests as its definition does', () => {
  const step = fc.record({
    do: fc.constantFrom('push', 'push', 'push', 'pop', 'pop', 'remove', 'bypass', 'end'),
    tenant: fc.constantFrom(...TENANTS),
    cost: fc.constantFrom(1, 1, 2, 50),
    pick: fc.nat(100),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const queue = new FairRequestQueue({
        scheduler: 'finish',
        weightOf: (tenant) => WEIGHTS[tenant]!,
      });
      const transcription = new Transcription();
      const all: QueuedRequest[] = [];
      for (const { do: what, tenant, cost, pick } of steps) {
        const request = makeRequest({ tenant, cost });
        const earlier = all[pick % Math.max(1, all.length)];
        if (what === 'push') {
          all.push(request);
          queue.push(request);
          transcription.push(request);
        }
        if (what === 'pop') expect(queue.pop()).toBe(transcription.pop());
        if (what === 'remove' && earlier !== undefined && queue.remove(earlier)) {
          transcription.remove(earlier);
        }
        // Neither a bypass nor a corrected cost exists in the definition.
        if (what === 'bypass') queue.bypass(request);
        if (what === 'end' && earlier?.state === 'dispatched') queue.end(earlier, cost);
      }
      for (let next = transcription.pop(); next !== null; next = transcription.pop()) {
        expect(queue.pop()).toBe(next);
      }
      expect(queue.length).toBe(0);
    }),
  );
});
