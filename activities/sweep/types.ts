/** What the sweep workflow asks of its activities. */
export interface SweepActivities {
  /** Removes one page of one kind of things that nobody needs any more. */
  sweepPage(input: SweepPageInput): Promise<SweepPageResult>;
}

/**
 * In this order:
 * - `files`: bytes of files that were deleted or have expired and that no open batch needs
 * - `file_rows`: their rows, a day later
 * - `scratch`: plans, journals and seals of delivered batches, after `retention.scratch`
 * - `batches`: everything of a batch, after `retention.batches`; its place in lists a day later
 * - `progress`: rows of chunks whose batch has ended
 * - `uploads`: parts of ended uploads, and what their completions left behind
 * - `upload_rows`: their rows, a day later
 * - `idempotency_keys`: keys of requests that were made more than a day ago
 * - `temporary`: what crashed writers left in the object store, a day after they did or, where it has
 *   become an object without a row, after `retention.scratch`
 */
export type SweepKind =
  | 'files'
  | 'file_rows'
  | 'scratch'
  | 'batches'
  | 'progress'
  | 'uploads'
  | 'upload_rows'
  | 'idempotency_keys'
  | 'temporary';

export interface SweepPageInput {
  readonly kind: SweepKind;
  /** Cursor: 0, or `nextSeq` of the page before. */
  readonly afterSeq: number;
}

/** What one page came to. */
export interface SweepPageResult {
  readonly removed: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}
