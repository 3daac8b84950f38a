import { addUsage, NO_USAGE, type Usage } from '../../core/batch/counts';
import type { JobUsage } from '../../core/delegation/job-counts';

/** The tokens of a job by its answers, for providers that state none for the whole job. It takes a byte per line. */
export class AnsweredUsage {
  readonly #from: number;
  readonly #isCounted: Uint8Array;
  #total = NO_USAGE;

  /** @param range the job's plan positions */
  constructor({ from, to }: { readonly from: number; readonly to: number }) {
    this.#from = from;
    this.#isCounted = new Uint8Array(to - from);
  }

  /**
   * Counts an answer to a position of the job, if it is the first one. An answer that an earlier attempt has journalled
   * counts too, because this attempt reads all of them again.
   */
  add(position: number, usage: () => Usage): void {
    const index = position - this.#from;
    if (this.#isCounted[index] !== 0) return;
    this.#isCounted[index] = 1;
    this.#total = addUsage(this.#total, usage());
  }

  /** What the provider states for the job, unless it states nothing. */
  orStated(stated: JobUsage): JobUsage {
    const { inputTokens, cachedTokens, outputTokens } = this.#total;
    const isStated = stated.inputTokens + stated.outputTokens > 0;
    return isStated ? stated : { inputTokens, cachedTokens, outputTokens };
  }
}
