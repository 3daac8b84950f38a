import type { WireHealthReply, WireHealthStatus, WireModel } from '../../proto/audio-messages';
import type { WorkerStatus } from './audio-calls';

/** Failures of Health in a row after which a worker is unreachable. */
const MISSES = 3;

const STATUS_OF: Readonly<Record<WireHealthStatus, WorkerStatus>> = {
  STATUS_UNSPECIFIED: 'error',
  LOADING: 'loading',
  SERVING: 'serving',
  DRAINING: 'draining',
  ERROR: 'error',
};

/** What settings take away from what a worker states. */
export interface WorkerCaps {
  readonly slots?: number | undefined;
  readonly models?: readonly string[] | undefined;
}

/** What is known of a worker by its Health (docs/design/audio-calls.md#readiness). */
export class WorkerState {
  readonly #caps: WorkerCaps;
  #reply: WireHealthReply | null = null;
  #models: ReadonlyMap<string, WireModel> = new Map();
  #misses = 0;
  #missReason = '';
  #isSuspect = false;
  healthReplies = 0;
  /** Whether it has said once what it serves. A worker that loads may say nothing yet. */
  hasNamedModels = false;

  constructor(caps: WorkerCaps) {
    this.#caps = caps;
  }

  get status(): WorkerStatus {
    if (this.#reply === null) return 'connecting';
    return this.#misses >= MISSES ? 'unreachable' : STATUS_OF[this.#reply.status];
  }

  /** Why it is not serving; null if it is. */
  get reason(): string | null {
    const { status } = this;
    if (status === 'serving') return this.#isSuspect ? 'the connection to it broke' : null;
    if (status === 'connecting' || status === 'unreachable') return this.#missReason;
    const said = this.#reply?.message ?? '';
    return said === '' ? `it says that it is ${status}` : said;
  }

  get isReady(): boolean {
    return this.status === 'serving' && !this.#isSuspect;
  }

  get engine(): string {
    return this.#reply?.engine ?? '';
  }

  get models(): ReadonlyMap<string, WireModel> {
    return this.#models;
  }

  get slots(): number {
    return Math.min(Math.max(1, this.#reply?.slots ?? 1), this.#caps.slots ?? Infinity);
  }

  get maxStreams(): number {
    return this.#reply?.maxStreams ?? 0;
  }

  onReply(reply: WireHealthReply): void {
    const { models: allowed } = this.#caps;
    const served = reply.models.filter(({ name }) => allowed?.includes(name) ?? true);
    this.#reply = reply;
    // A worker that loads may not know its models yet: the ones before stand.
    if (reply.models.length > 0 || reply.status === 'SERVING') {
      this.#models = new Map(served.map((model) => [model.name, withLeastBatch(model)]));
      this.hasNamedModels = true;
    }
    this.#misses = 0;
    this.#isSuspect = false;
    this.healthReplies++;
  }

  onMiss(reason: string): void {
    this.#misses++;
    this.#missReason = reason;
  }

  /** A call has lost its connection: nothing is sent before the next Health. */
  onLost(): void {
    this.#isSuspect = true;
  }
}

function withLeastBatch(model: WireModel): WireModel {
  return { ...model, maxBatch: Math.max(1, model.maxBatch) };
}
