/** What one probe of a backend found. */
export type ProbeResult =
  /** An answer of this status. */
  | { readonly kind: 'status'; readonly status: number }
  /** The connection was refused: nothing listens there. */
  | { readonly kind: 'refused' }
  /** No answer in time, or no connection. */
  | { readonly kind: 'silent'; readonly message: string };

/** How probes are judged. */
export interface ReadinessRules {
  /** So many failures in a row make a backend not ready. */
  readonly fall: number;
  /** How long a real answer outweighs silent probes, ms: two intervals of the probe. */
  readonly answerCountsMs: number;
}

/**
 * Whether a backend is ready, as its probes and its real answers say
 * (docs/design/gateway.md#readiness). Times are ms of a monotonic clock.
 */
export class Readiness {
  readonly #rules: ReadinessRules;
  #failures = 0;
  #answeredMs = -Infinity;
  #reason: string | null = 'not probed yet';

  constructor(rules: ReadinessRules) {
    this.#rules = rules;
  }

  get isReady(): boolean {
    return this.#reason === null;
  }

  /** Why the backend is not ready; null if it is. */
  get reason(): string | null {
    return this.#reason;
  }

  /** A real request got a 2xx. */
  onAnswered(nowMs: number): void {
    this.#answeredMs = nowMs;
  }

  onProbed(result: ProbeResult, nowMs: number): void {
    if (result.kind === 'status' && isSuccess(result.status)) {
      this.#failures = 0;
      this.#reason = null;
      return;
    }
    this.#failures++;
    if (this.#isDown(result, nowMs)) this.#reason = describe(result);
  }

  #isDown(result: ProbeResult, nowMs: number): boolean {
    if (!this.isReady || result.kind === 'refused') return true;
    if (this.#failures < this.#rules.fall) return false;
    const isServing = nowMs - this.#answeredMs <= this.#rules.answerCountsMs;
    return result.kind === 'status' || !isServing;
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function describe(result: ProbeResult): string {
  if (result.kind === 'status') return `the probe got status ${result.status}`;
  return result.kind === 'refused' ? 'the connection was refused' : result.message;
}
