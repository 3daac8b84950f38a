import { CancellationScope } from '@temporalio/workflow';
import type { RowState } from '../activities/contract';
import type { StopCause } from '../core/batch/status';
import { step } from './activity-policies';

/**
 * Ends a batch before all its lines are answered. The first request stops the chunks at once. The row
 * decides which cause the end has, because the API may have claimed another one
 * (docs/design/ends.md#the-first-cause).
 *
 * States: running → requested (chunks cancelled, claim in progress) → settled (the row's cause is known).
 */
export class StopControl {
  #requested = false;
  #cause: StopCause | null = null;
  #claim: Promise<void> | null = null;
  #chunks: CancellationScope | null = null;
  readonly #batchId: string;

  constructor(batchId: string) {
    this.#batchId = batchId;
  }

  /** True from the first request on: no new chunk is started. */
  get requested(): boolean {
    return this.#requested;
  }

  /** The requested cause, replaced by the row's cause once that is known. */
  get cause(): StopCause | null {
    return this.#cause;
  }

  /** Chunks run in this scope from now on; a stop cancels it. */
  attach(chunks: CancellationScope): void {
    this.#chunks = chunks;
    if (this.#requested) chunks.cancel();
  }

  /** Stops the chunks and claims `cause` in the row. Later requests change nothing. */
  request(cause: StopCause): void {
    if (this.#requested) return;
    this.#requested = true;
    this.#cause = cause;
    this.#chunks?.cancel();
    // The claim must run even if the workflow was cancelled, because that cancels the root scope.
    this.#claim = CancellationScope.nonCancellable(async () => {
      const row = await step('claimStop', { batchId: this.#batchId, cause });
      if (row.stopCause !== null) this.#cause = row.stopCause;
    });
  }

  /** Takes over what a step returned: a cause in the row counts as a request. */
  observe(row: RowState): void {
    if (row.found && row.stopCause !== null) this.request(row.stopCause);
  }

  /** The row's cause, once it is known; null if no end was requested. */
  async settled(): Promise<StopCause | null> {
    await this.#claim;
    return this.#cause;
  }
}
