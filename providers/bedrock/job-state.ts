import type { GetModelInvocationJobResponse } from '@aws-sdk/client-bedrock';
import type { JobCounts } from '../../core/delegation/job-counts';
import { boundedError } from '../call-result';
import type { JobState, JobStatus } from '../provider';

/**
 * Amazon's words for the states of a job. `PartiallyCompleted` says that time was over before all records had been
 * processed; `Expired`, that it was over before the job began.
 */
const STATES: ReadonlyMap<string, JobState> = new Map([
  ['submitted', 'submitted'],
  ['validating', 'submitted'],
  ['scheduled', 'submitted'],
  ['inprogress', 'running'],
  ['completed', 'completed'],
  ['partiallycompleted', 'expired'],
  ['expired', 'expired'],
  ['failed', 'failed'],
  ['stopping', 'cancelling'],
  ['stopped', 'cancelled'],
]);

/** What a job's own words say. Results and tokens are in the bucket. */
export interface BedrockJob {
  readonly status: Omit<JobStatus, 'resultFiles' | 'hasAllResults' | 'usage'>;
  /** Whether the job has processed records, so that its end leaves results. */
  readonly hasResults: boolean;
  /** The address of its output; null if it states none. */
  readonly outputUri: string | null;
}

/**
 * Reads a job of `GetModelInvocationJob`; null without an ARN and a state.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_GetModelInvocationJob.html
 */
export function readBedrockJob(
  job: Partial<GetModelInvocationJobResponse>,
  mask: (text: string) => string,
): BedrockJob | null {
  const { jobArn, status: word, message, outputDataConfig } = job;
  if (jobArn === undefined || word === undefined) return null;
  const known = STATES.get(word.toLowerCase());
  const state = known ?? 'running';
  const counts = countsOf(job);
  const processed = counts === null ? null : counts.completed + counts.failed;
  return {
    status: {
      externalId: jobArn,
      state,
      providerState: word.slice(0, 100),
      isKnownState: known !== undefined,
      counts,
      error:
        state === 'failed'
          ? boundedError(
              { code: null, message: message ?? 'Amazon Bedrock names no reason.' },
              mask,
            )
          : null,
      lineErrors: [],
      isQuotaRefusal: false,
    },
    hasResults:
      processed === null
        ? ['completed', 'partiallycompleted', 'stopped'].includes(word.toLowerCase())
        : processed > 0,
    outputUri: outputDataConfig?.s3OutputDataConfig?.s3Uri ?? null,
  };
}

/** Jobs of older models may state no numbers. */
function countsOf({
  totalRecordCount: total,
  successRecordCount: completed,
  errorRecordCount: failed,
}: Partial<GetModelInvocationJobResponse>): JobCounts | null {
  if (total === undefined || completed === undefined || failed === undefined) return null;
  return { total, completed, failed };
}
