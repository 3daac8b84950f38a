/**
 * The activity of the sweep. These types travel through Temporal, so fields keep their names
 * (docs/design/temporal.md#wire-names).
 */
export interface SweepActivities {
  /** Removes one page of one kind of item. */
  sweepPage(input: SweepPageInput): Promise<SweepPageResult>;
}

/**
 * Kinds in the order in which they are swept:
 * - `files`: bytes of files that were deleted or have expired and that no open batch needs
 * - `file_rows`: their rows, a day later
 * - `scratch`: plans, journals and seals of delivered batches, after `retention.scratch`
 * - `batches`: all objects and the row of a batch, after `retention.batches`; its list cursor a day later
 * - `progress`: rows of chunks whose batch has ended
 * - `uploads`: parts of ended uploads, and objects of completions that failed
 * - `upload_rows`: their rows, a day later
 * - `idempotency_keys`: keys of requests made more than a day ago
 * - `temporary`: what crashed writers left in the object store: temporary files after a day, objects
 *   without a row after `retention.scratch`
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
  /** Cursor: 0, or `nextSeq` of the previous page. */
  readonly afterSeq: number;
}

/** What one page removed. */
export interface SweepPageResult {
  readonly removed: number;
  /** Null after the last page. */
  readonly nextSeq: number | null;
}
