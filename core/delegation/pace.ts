/** Requests a second from which the local models need the thread. Below, they use a few per cent of it. */
const BUSY_PER_SEC = 100;
/** Beside a busy local model, a part stages or collects 250 lines a second: about 2 % of a thread. */
const LINE_MS = 4;
/** What counts as one line more: a longer line costs more. */
const BYTES_OF_A_LINE = 8_192;
/** Work between two pauses. It keeps the thread for about a millisecond. */
const OWED_MS = 50;

/**
 * Decides when the work on a part makes room for requests of local models. Provider jobs take hours, so their lines may
 * wait; a local model that shares the thread with them would lose as much of its rate as they take
 * (docs/design/delegation.md#local-models-first). Times are ms of a monotonic clock.
 */
export class Pace {
  #owedMs = 0;
  #isBusy = false;
  #seen: { readonly requests: number; readonly atMs: number };

  /** @param requests of local models that have ended so far */
  constructor(requests: number, nowMs: number) {
    this.#seen = { requests, atMs: nowMs };
  }

  /** Counts the work on a line. True if it is time to ask {@link pauseMs}. */
  worked(bytes: number): boolean {
    this.#owedMs += LINE_MS * (1 + bytes / BYTES_OF_A_LINE);
    return this.#owedMs >= OWED_MS;
  }

  /** How long to pause now; 0 if the local models leave the thread idle. */
  pauseMs(requests: number, nowMs: number): number {
    const sinceMs = nowMs - this.#seen.atMs;
    // Over a shorter time the rate would say nothing.
    if (sinceMs >= OWED_MS) {
      this.#isBusy = ((requests - this.#seen.requests) * 1_000) / sinceMs >= BUSY_PER_SEC;
      this.#seen = { requests, atMs: nowMs };
    }
    const owedMs = this.#owedMs;
    this.#owedMs = 0;
    return this.#isBusy ? owedMs : 0;
  }
}
