import type { TranscriptionJob } from '@aws-sdk/client-transcribe';
import type { JobState, JobStatus, ProviderError } from '../provider';

const STATES: Readonly<Record<string, JobState>> = {
  QUEUED: 'submitted',
  IN_PROGRESS: 'running',
  COMPLETED: 'completed',
  FAILED: 'failed',
};

/** How the reasons begin for which a job fails because of its recording, as the reference lists them. */
const MEDIA_REASON =
  /^(unsupported media|the media format|invalid sample|the sample rate|invalid file size|invalid number of channels)/i;

/** What the adapter makes of a job. */
export interface TranscribeJob {
  readonly status: JobStatus;
  readonly createdAtMs: number | null;
}

/**
 * Reads a job of `GetTranscriptionJob`: null without a name and a state.
 * https://docs.aws.amazon.com/transcribe/latest/APIReference/API_TranscriptionJob.html
 * @param transcript the file to which the job writes; null if its name cannot be told
 */
export function readTranscribeJob(
  job: TranscriptionJob | undefined,
  transcript: string | null,
  mask: (text: string) => string,
): TranscribeJob | null {
  const { TranscriptionJobName: name, TranscriptionJobStatus: word } = job ?? {};
  if (name === undefined || word === undefined) return null;
  const known = STATES[word.toUpperCase()];
  const state = known ?? 'running';
  const hasEnded = state === 'completed' || state === 'failed';
  const error = state === 'failed' ? failureOf(job?.FailureReason, mask) : null;
  const hasFile = job?.Transcript?.TranscriptFileUri !== undefined && transcript !== null;
  return {
    createdAtMs: job?.CreationTime?.getTime() ?? null,
    status: {
      externalId: name,
      state,
      providerState: word.slice(0, 100),
      isKnownState: known !== undefined,
      counts: hasEnded ? countsOf(state) : null,
      error,
      // A job has one line, so whatever is wrong with its recording is wrong with that line.
      lineErrors:
        error !== null && MEDIA_REASON.test(error.message)
          ? [{ index: 0, param: 'file', ...error }]
          : [],
      isQuotaRefusal: false,
      resultFiles: state === 'completed' && transcript !== null ? [transcript] : [],
      hasAllResults: state !== 'completed' || hasFile,
      usage: null,
    },
  };
}

function countsOf(state: JobState): JobStatus['counts'] {
  const completed = state === 'completed' ? 1 : 0;
  return { total: 1, completed, failed: 1 - completed };
}

function failureOf(reason: string | undefined, mask: (text: string) => string): ProviderError {
  return {
    code: null,
    message: mask(reason ?? 'Amazon Transcribe names no reason.').slice(0, 2_000),
  };
}
