import type { JobCounts, JobUsage } from '../../../core/delegation/job-counts';
import type { JobReason } from '../../../core/delegation/job-reason';
import type { JobOutcome, JobStep } from '../../../core/delegation/job-steps';

/**
 * A row of `provider_jobs`: a job at a provider's batch API. Times are milliseconds since the epoch
 * (docs/design/provider-jobs.md#rows).
 */
export interface JobRow extends NewJobRow {
  /** Number in the order of insertion. */
  readonly seq: number;
  readonly step: JobStep;
  /** Key of the staged input; null until it is staged. */
  readonly stagedKey: string | null;
  readonly lines: number | null;
  readonly bytes: number | null;
  /** Estimated input tokens. */
  readonly tokens: number;
  /** The provider's id of the uploaded input. */
  readonly upload: string | null;
  /** The completion window that every create call sends. */
  readonly sentWindow: string | null;
  /** When the first attempt took a lease; null if the job was certainly never created. */
  readonly firstCreateAtMs: number | null;
  /** End of the latest lease that was not given back. */
  readonly creatingUntilMs: number | null;
  /**
   * The provider's ids of jobs that may be this one, as long as it has no id and only results can tell. Empty: the
   * job does not exist. Null: that is not known.
   */
  readonly candidates: readonly string[] | null;
  /** The provider's id of the job. */
  readonly externalId: string | null;
  readonly isAdopted: boolean;
  /** The provider's word for the job's state. */
  readonly providerStatus: string | null;
  readonly outcome: JobOutcome | null;
  readonly counts: JobCounts;
  readonly usage: JobUsage;
  /** In US dollars; null without a configured price. */
  readonly costUsd: number | null;
  readonly error: JobError | null;
  /** Status calls in a row that failed. */
  readonly pollFailures: number;
  readonly createdAtMs: number;
  readonly submittedAtMs: number | null;
  readonly endedAtMs: number | null;
}

/** What identifies a job, and where it goes. It never changes, except that staging may end a part early. */
export interface NewJobRow {
  readonly id: string;
  readonly batchId: string;
  readonly tenant: string;
  readonly safeModel: string;
  /** Plan positions; `to` is excluded. */
  readonly from: number;
  readonly to: number;
  readonly generation: number;
  readonly ordinal: number;
  /** The model's name that clients use. */
  readonly model: string;
  /** The model's name at the provider. */
  readonly providerModel: string;
  /** Name of the provider in the settings. */
  readonly provider: string;
  /** Fingerprint of the account that the settings led to. */
  readonly account: string;
}

/** Why a job failed. */
export interface JobError {
  /** The provider's. */
  readonly code: string | null;
  /** In the provider's words, for operators only. */
  readonly message: string;
  /** Ours, if it decides what follows. */
  readonly reason?: JobReason;
}

const TIMES = [
  'first_create_at',
  'creating_until',
  'created_at',
  'submitted_at',
  'ended_at',
] as const;

/** Select list of a {@link JobColumns}. */
export const JOB_COLUMNS = `id, seq, batch_id, tenant, safe_model, from_pos, to_pos, generation, ordinal,
  model, provider_model, provider, account, step, staged_key, lines, bytes, tokens, upload, sent_window,
  candidates, external_id, adopted, provider_status, outcome, total, completed, failed, input_tokens, cached_tokens,
  output_tokens, cost_usd, error, poll_failures,
  ${TIMES.map((column) => `floor(extract(epoch from ${column}) * 1000)::bigint as ${column}`).join(', ')}`;

/** One row as {@link JOB_COLUMNS} selects it. */
export interface JobColumns {
  id: string;
  seq: number;
  batch_id: string;
  tenant: string;
  safe_model: string;
  from_pos: number;
  to_pos: number;
  generation: number;
  ordinal: number;
  model: string;
  provider_model: string;
  provider: string;
  account: string;
  step: JobStep;
  staged_key: string | null;
  lines: number | null;
  bytes: number | null;
  tokens: number;
  upload: string | null;
  sent_window: string | null;
  first_create_at: number | null;
  creating_until: number | null;
  candidates: string[] | null;
  external_id: string | null;
  adopted: boolean;
  provider_status: string | null;
  outcome: JobOutcome | null;
  total: number;
  completed: number;
  failed: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  error: JobError | null;
  poll_failures: number;
  created_at: number;
  submitted_at: number | null;
  ended_at: number | null;
}

/** The row in our names. */
export function toJobRow(row: JobColumns): JobRow {
  return {
    id: row.id,
    seq: row.seq,
    batchId: row.batch_id,
    tenant: row.tenant,
    safeModel: row.safe_model,
    from: row.from_pos,
    to: row.to_pos,
    generation: row.generation,
    ordinal: row.ordinal,
    model: row.model,
    providerModel: row.provider_model,
    provider: row.provider,
    account: row.account,
    step: row.step,
    stagedKey: row.staged_key,
    lines: row.lines,
    bytes: row.bytes,
    tokens: row.tokens,
    upload: row.upload,
    sentWindow: row.sent_window,
    firstCreateAtMs: row.first_create_at,
    creatingUntilMs: row.creating_until,
    candidates: row.candidates,
    externalId: row.external_id,
    isAdopted: row.adopted,
    providerStatus: row.provider_status,
    outcome: row.outcome,
    counts: { total: row.total, completed: row.completed, failed: row.failed },
    usage: {
      inputTokens: row.input_tokens,
      cachedTokens: row.cached_tokens,
      outputTokens: row.output_tokens,
    },
    costUsd: row.cost_usd,
    error: row.error,
    pollFailures: row.poll_failures,
    createdAtMs: row.created_at,
    submittedAtMs: row.submitted_at,
    endedAtMs: row.ended_at,
  };
}
