import type { AudioNeed } from '../../core/audio/audio-need';
import { missingOffer } from '../../core/audio/model-offer';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import type { AudioWorkerLink } from '../../inference/audio/audio-calls';

/** A slot of a worker that is in use, or blocked after a cancel that was not acknowledged. */
export interface Slot {
  readonly worker: WorkerSlots;
  readonly model: string;
  readonly isSheddable: boolean;
}

/** What a slot is taken for. */
export interface SlotWish {
  readonly need: AudioNeed;
  readonly band: Band;
  /** A worker that should not get it if another one can. */
  readonly avoid?: AudioWorkerLink | null;
}

/** The slots of one worker. */
export class WorkerSlots {
  readonly link: AudioWorkerLink;
  readonly used = new Set<Slot>();
  readonly quarantined = new Set<Slot>();
  lastUsed = 0;
  /** The number of Health replies at which it said that it had no slot; -1 for never. */
  #fullAt = -1;

  constructor(link: AudioWorkerLink) {
    this.link = link;
  }

  get free(): number {
    const { isReady, healthReplies, slots } = this.link;
    if (!isReady || this.#fullAt === healthReplies) return 0;
    return Math.max(0, slots - this.used.size - this.quarantined.size);
  }

  /** It refused a call for lack of a slot: it counts as full until its next Health. */
  markFull(): void {
    this.#fullAt = this.link.healthReplies;
  }
}

/** The slots of all audio workers (docs/design/audio-scheduling.md#slots). */
export class SlotTable {
  readonly workers: readonly WorkerSlots[];
  #turn = 0;

  constructor(links: readonly AudioWorkerLink[]) {
    this.workers = links.map((link) => new WorkerSlots(link));
  }

  /** Takes a slot of the best worker: most free slots, then least recently used; null if there is none. */
  take(wish: SlotWish): Slot | null {
    const worker = this.#best(wish);
    if (worker === null) return null;
    const { need, band } = wish;
    const slot = { worker, model: need.model, isSheddable: band === BAND.sheddable };
    worker.used.add(slot);
    worker.lastUsed = ++this.#turn;
    return slot;
  }

  hasFree(wish: SlotWish): boolean {
    return this.#best(wish) !== null;
  }

  /** A slot can be taken again. */
  release(slot: Slot): void {
    slot.worker.used.delete(slot);
    slot.worker.quarantined.delete(slot);
  }

  /** A slot stays blocked until it is released. */
  quarantine(slot: Slot): void {
    slot.worker.used.delete(slot);
    slot.worker.quarantined.add(slot);
  }

  /** Whether a worker that is ready can serve it, at some time. */
  isServed(need: AudioNeed): boolean {
    return this.workers.some(({ link }) => link.isReady && canServe(link, need));
  }

  #best({ need, band, avoid = null }: SlotWish): WorkerSlots | null {
    if (band === BAND.sheddable && !this.#leavesHeadroom(need.model)) return null;
    let best: WorkerSlots | null = null;
    for (const worker of this.workers) {
      if (worker.free === 0 || !canServe(worker.link, need)) continue;
      if (best === null || isBetter(worker, best, avoid)) best = worker;
    }
    return best;
  }

  /** Batches never take the last slot of a model, unless it is the only one. */
  #leavesHeadroom(model: string): boolean {
    let slots = 0;
    let taken = 0;
    for (const { link, used, quarantined } of this.workers) {
      if (link.isReady && link.models.has(model)) slots += link.slots;
      for (const one of [...used, ...quarantined]) {
        if (one.isSheddable && one.model === model) taken++;
      }
    }
    return taken < Math.max(1, slots - 1);
  }
}

function isBetter(one: WorkerSlots, other: WorkerSlots, avoid: AudioWorkerLink | null): boolean {
  const isAvoided = one.link === avoid;
  if (isAvoided !== (other.link === avoid)) return !isAvoided;
  if (one.free !== other.free) return one.free > other.free;
  return one.lastUsed < other.lastUsed;
}

function canServe({ models }: AudioWorkerLink, need: AudioNeed): boolean {
  const offer = models.get(need.model);
  return offer !== undefined && missingOffer(offer, need) === null;
}
