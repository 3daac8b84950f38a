import { BANDS, type Band, type PerBand } from '../queue/band';
import type { FairRequestQueue } from '../queue/fair-request-queue';
import type { RequestFlow } from '../queue/queued-request';

/** What a survey says of one flow. */
export interface FlowStats {
  readonly band: Band;
  readonly tenant: string;
  readonly model: string;
  readonly weight: number;
  readonly queued: number;
  readonly inFlight: number;
  /** How long its oldest request waits, ms; null if none waits. */
  readonly oldestMs: number | null;
  /** Tokens of its requests that ended in the last minute. */
  readonly recentTokens: number;
}

/** What a survey found. */
export interface SurveyResult {
  /** The longest flows: the most requests that wait, then in flight, then tokens of the last minute. */
  readonly longest: readonly FlowStats[];
  /** How long the oldest request of each band waits, ms; null if none waits. */
  readonly oldestMs: PerBand<number | null>;
}

/**
 * Looks at the flows of a pool one after the other, so that its driver can let other work of the process run
 * in between. It looks at flows and at their oldest requests, never at all requests. It keeps twice `most`
 * flows at a time, so n flows take O(n) steps.
 */
export class FlowSurvey {
  readonly #queues: PerBand<FairRequestQueue>;
  readonly #most: number;
  readonly #nowMs: number;
  readonly #oldestMs: [number | null, number | null, number | null] = [null, null, null];
  #kept: FlowStats[] = [];
  /** The last of the flows that are certainly kept. */
  #least: FlowStats | null = null;

  constructor(queues: PerBand<FairRequestQueue>, most: number, nowMs: number) {
    this.#queues = queues;
    this.#most = most;
    this.#nowMs = nowMs;
  }

  /** One flow for each step. Flows that come or go meanwhile may be missed. */
  *steps(): Generator<void> {
    for (const band of BANDS) {
      for (const flow of this.#queues[band].table) {
        this.#look(band, flow);
        yield;
      }
    }
  }

  get result(): SurveyResult {
    this.#prune();
    return { longest: this.#kept, oldestMs: this.#oldestMs };
  }

  #look(band: Band, flow: RequestFlow): void {
    const { oldest, size: queued, inFlight, tenant, model, weight } = flow;
    const oldestMs = oldest === null ? null : Math.max(0, this.#nowMs - oldest.queuedAtMs);
    if (oldestMs !== null) this.#oldestMs[band] = Math.max(this.#oldestMs[band] ?? 0, oldestMs);
    const recentTokens = flow.recentTokens(this.#nowMs);
    if (queued === 0 && inFlight === 0 && recentTokens === 0) return;
    const stats = { band, tenant, model, weight, queued, inFlight, oldestMs, recentTokens };
    if (this.#least !== null && byLength(stats, this.#least) >= 0) return;
    this.#kept.push(stats);
    if (this.#kept.length >= 2 * this.#most) this.#prune();
  }

  #prune(): void {
    this.#kept = this.#kept.sort(byLength).slice(0, this.#most);
    this.#least = this.#kept[this.#most - 1] ?? null;
  }
}

function byLength(a: FlowStats, b: FlowStats): number {
  return b.queued - a.queued || b.inFlight - a.inFlight || b.recentTokens - a.recentTokens;
}
