import { isSettled, type JobOutcome, type JobStep } from './job-steps';

/** The five shapes of a provider state: completions, and one for each service that transcribes. */
export type ProviderStateKind = 'COMPLETION' | 'AZURE' | 'SARVAM' | 'AWS' | 'GOOGLE';

/** The shapes of types that transcribe. */
const TRANSCRIBERS: Readonly<Record<string, ProviderStateKind>> = {
  aws_transcribe: 'AWS',
  azure_speech: 'AZURE',
  google_speech: 'GOOGLE',
  sarvam: 'SARVAM',
};

/**
 * The shape for a batch with jobs at providers of these types. A batch whose models run at several transcribers has
 * the shape of the first one, because a state names one provider.
 */
export function stateKind(types: readonly (string | null)[]): ProviderStateKind {
  const kinds = types.flatMap((type) => (type === null ? [] : (TRANSCRIBERS[type] ?? [])));
  return kinds[0] ?? 'COMPLETION';
}

/** Statuses of a job, as users see them. A provider state writes them in capitals. */
export const STATE_STATUSES = [
  'pending',
  'submitted',
  'in_progress',
  'completed',
  'partial_complete',
  'failed',
  'cancelled',
  'expired',
] as const;
export type StateStatus = (typeof STATE_STATUSES)[number];

/** A job as it goes into a provider state. */
export interface StateJob {
  readonly externalId: string | null;
  readonly status: StateStatus;
  readonly error: string | null;
  /** Status calls in a row that failed. */
  readonly pollFailures: number;
  /** The model at the provider; for GOOGLE the recogniser, such as `long`. */
  readonly model: string;
  /** Where the provider puts its results; null if it has no such place, or not yet. */
  readonly outputUri: string | null;
  /** The job's only file at the provider; null for jobs with several, and before the upload. */
  readonly sourceUri: string | null;
  readonly filename: string | null;
  /** Transcriptions of the job's files; absent until they are collected. */
  readonly result?: readonly unknown[];
}

/** What a provider state is made from. */
export interface StateInput {
  readonly kind: ProviderStateKind;
  /** Input files of the batch. */
  readonly inputIds: readonly string[];
  /** URLs in the input that could not be used. */
  readonly invalidUrls: readonly string[];
  readonly jobs: readonly StateJob[];
}

/**
 * The jobs of a batch in the shape that the column `provider_state` of other batch services has, for programs
 * that read it. A pure function of the rows; nothing is stored in this shape
 * (docs/design/provider-jobs.md#provider-state).
 */
export function providerState(input: StateInput): Record<string, unknown> {
  if (input.kind === 'COMPLETION') {
    return {
      task_type: 'completion',
      input_dataset_ids: input.inputIds,
      jobs: input.jobs.map(completionJob),
    };
  }
  return {
    task_type: 'transcription',
    provider: input.kind,
    dataset_ids: input.inputIds,
    invalid_urls: input.invalidUrls,
    ...(input.kind === 'SARVAM' ? { gcs_map: sourcesById(input.jobs) } : {}),
    jobs: input.jobs.map((job) => transcriptionJob(input.kind, job)),
  };
}

/**
 * The status of a job for its reader. It shows the end of a job only when its answers are collected. A job that
 * was given up has failed, whatever it was at the provider.
 * @param job `providerStatus` is null before the first status call
 */
export function stateStatus(job: {
  readonly step: JobStep;
  readonly outcome: JobOutcome | null;
  readonly providerStatus: string | null;
}): StateStatus {
  if (job.step === 'submitted' || job.step === 'ended')
    return job.providerStatus === null ? 'submitted' : 'in_progress';
  if (!isSettled(job.step)) return 'pending';
  const isLost = job.step === 'refused' || job.step === 'abandoned';
  return isLost ? 'failed' : (job.outcome ?? 'failed');
}

function completionJob(job: StateJob): Record<string, unknown> {
  return {
    model: job.model,
    status: job.status.toUpperCase(),
    external_job_id: job.externalId,
    ...(job.outputUri === null ? {} : { output_uri: job.outputUri }),
    ...errorOf(job),
    transient_failures: job.pollFailures,
  };
}

function transcriptionJob(kind: ProviderStateKind, job: StateJob): Record<string, unknown> {
  return {
    ...(kind === 'GOOGLE' ? { model: job.model } : {}),
    external_job_id: job.externalId,
    ...(kind === 'AWS' ? { gcs_uri: job.sourceUri, filename: job.filename } : {}),
    status: job.status.toUpperCase(),
    ...(job.result === undefined ? {} : { result: job.result }),
    ...errorOf(job),
    // The shape of Azure has no such member.
    ...(kind === 'AZURE' ? {} : { transient_failures: job.pollFailures }),
  };
}

function errorOf({ error }: StateJob): { error?: string } {
  return error === null ? {} : { error };
}

/** Source by job id; jobs that the provider does not know yet have no key. */
function sourcesById(jobs: readonly StateJob[]): Record<string, string> {
  return Object.fromEntries(
    jobs.flatMap(({ externalId, sourceUri }) =>
      externalId === null || sourceUri === null ? [] : [[externalId, sourceUri]],
    ),
  );
}
