import { CancellationScope } from '@temporalio/workflow';
import type { RowState } from '../activities/contract';
import type { StopCause } from '../core/batch/status';
import { isTerminal } from '../core/batch/status';
import { step } from './proxies';

/**
 * The end of a batch before all its lines are answered. Whoever asks first stops the chunks at once;
 * which cause it is, the row decides (execution §4), since the API may have claimed another.
 *
 * States: running → requested (chunks cancelled, claim under way) → settled (the row's cause known).
 */
export class StopControl {
  #requested = false;
  #cause: StopCause | null = null;
  #claim: Promise<void> | null = null;
  #chunks: CancellationScope | null = null;
  #rowTerminal = false;
  readonly #batchId: string;

  constructor(batchId: string) {
    this.#batchId = batchId;
  }

  /** True from the first request on: no new chunk is started. */
  get requested(): boolean {
    return this.#requested;
  }

  /** What asked for the end; the row's word once it is known. */
  get cause(): StopCause | null {
    return this.#cause;
  }

  /** The row says that this batch has ended already (a reset workflow, a second run). */
  get rowTerminal(): boolean {
    return this.#rowTerminal;
  }

  /** Chunks run in this scope from now on; a stop cancels it. */
  attach(chunks: CancellationScope): void {
    this.#chunks = chunks;
    if (this.#requested) chunks.cancel();
  }

  /** Asks for the end. Further requests, whatever their cause, change nothing. */
  request(cause: StopCause): void {
    if (this.#requested) return;
    this.#requested = true;
    this.#cause = cause;
    this.#chunks?.cancel();
    // The claim must run even where the root scope was cancelled natively.
    this.#claim = CancellationScope.nonCancellable(async () => {
      const row = await step('claimStop', { batchId: this.#batchId, cause });
      if (isTerminal(row.status)) this.#rowTerminal = true;
      if (row.stopCause !== null) this.#cause = row.stopCause;
    });
  }

  /** Takes over what the row said in the answer of any step: a cause there counts as a request. */
  observe(row: RowState): void {
    if (!row.found) return;
    if (isTerminal(row.status)) this.#rowTerminal = true;
    if (row.stopCause !== null) this.request(row.stopCause);
  }

  /** The cause as the row has it, once known; null where nothing asked for an end. */
  async settled(): Promise<StopCause | null> {
    await this.#claim;
    return this.#cause;
  }
}
