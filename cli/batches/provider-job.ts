import type { Batch } from 'openai/resources/batches';
import {
  providerState,
  stateKind,
  type StateJob,
  type StateStatus,
} from '../../core/delegation/provider-state';

/** A job of a batch at a provider, as Nightshift's API lists it (docs/design/provider-jobs.md#in-the-api). */
export interface ProviderJob {
  readonly id: string;
  readonly batch_id: string;
  readonly model: string;
  readonly provider: string;
  readonly provider_type: string | null;
  readonly status: StateStatus;
  readonly provider_status: string | null;
  readonly external_id: string | null;
  readonly external_input_id: string | null;
  readonly generation: number;
  readonly request_counts: {
    readonly total: number;
    readonly completed: number;
    readonly failed: number;
  };
  /** In US dollars; null without a price. */
  readonly cost: number | null;
  readonly poll_failures: number;
  readonly created_at: number;
  readonly error: { readonly code: string | null; readonly message: string } | null;
}

/** The jobs of a batch in the shape of the column `provider_state` of other batch services. */
export function stateOf(batch: Batch, jobs: readonly ProviderJob[]): Record<string, unknown> {
  return providerState({
    kind: stateKind(jobs.map((job) => job.provider_type)),
    inputIds: [batch.input_file_id],
    // An input file with a URL is refused as a whole.
    invalidUrls: [],
    jobs: jobs.map(stateJob),
  });
}

function stateJob(job: ProviderJob): StateJob {
  const hasOneFile = job.request_counts.total === 1;
  const source = hasOneFile ? job.external_input_id : null;
  return {
    externalId: job.external_id,
    status: job.status,
    error: job.error === null ? null : (job.error.code ?? job.error.message),
    pollFailures: job.poll_failures,
    model: job.model,
    outputUri: null,
    sourceUri: source,
    filename: source?.split('/').at(-1) ?? null,
  };
}
