import { z } from 'zod';
import { boundedError } from '../call-result';
import type { JobState, JobStatus } from '../provider';

const STATES: Readonly<Record<string, JobState>> = {
  accepted: 'submitted',
  pending: 'submitted',
  running: 'running',
  completed: 'completed',
  failed: 'failed',
};
/** The state of a job that was not started. It does nothing. */
const UNSTARTED = 'accepted';

const names = z.array(z.object({ file_name: z.string() })).nullish();
const detail = z.object({
  inputs: names,
  outputs: names,
  state: z.string().nullish(),
  error_message: z.string().nullish(),
  exception_name: z.string().nullish(),
});
const job = z.object({
  job_id: z.string().min(1),
  job_state: z.string().min(1),
  created_at: z.string().nullish(),
  total_files: z.number().nullish(),
  successful_files_count: z.number().nullish(),
  failed_files_count: z.number().nullish(),
  error_message: z.string().nullish(),
  job_details: z.array(detail).nullish(),
});

/** One recording of a job. */
export interface SarvamFile {
  /** The name of the recording. */
  readonly input: string;
  /** The name of its result; null if it has none. */
  readonly output: string | null;
  /** Whether the recording is to blame for that. */
  readonly isUnreadable: boolean;
}

/** What the adapter reads of a job: https://docs.sarvam.ai/api-reference/speech-to-text/stt/job/status. */
export interface SarvamJob {
  readonly externalId: string;
  readonly createdAtMs: number | null;
  readonly isStarted: boolean;
  readonly status: JobStatus;
  /** Of an ended job, as far as it names them. */
  readonly files: readonly SarvamFile[];
}

/** An exception, or its message, that names the recording. Others may be Sarvam's own fault. */
const UNREADABLE = /unprocessable|bad ?request|unsupported|invalid (audio|file|format)|corrupt/i;

/** Reads a job; null if it is something else. */
export function readSarvamJob(json: unknown, mask: (text: string) => string): SarvamJob | null {
  const parsed = job.safeParse(json);
  if (!parsed.success) return null;
  const { job_id: externalId, job_state: word, created_at: createdAt } = parsed.data;
  const createdAtMs = Date.parse(createdAt ?? '');
  const files = (parsed.data.job_details ?? []).flatMap((one) => fileOf(one) ?? []);
  return {
    externalId,
    createdAtMs: Number.isNaN(createdAtMs) ? null : createdAtMs,
    isStarted: word.toLowerCase() !== UNSTARTED,
    status: statusOf(parsed.data, files.length, mask),
    files,
  };
}

function statusOf(
  { job_id: externalId, job_state: word, error_message: message, ...counts }: z.infer<typeof job>,
  named: number,
  mask: (text: string) => string,
): JobStatus {
  const known = STATES[word.toLowerCase()];
  const state = known ?? 'running';
  const hasEnded = state === 'completed' || state === 'failed';
  const { total_files: total, successful_files_count: succeeded } = counts;
  const error = { code: null, message: message ?? 'Sarvam names no reason.' };
  return {
    externalId,
    state,
    providerState: word.slice(0, 100),
    isKnownState: known !== undefined,
    counts:
      hasEnded && typeof total === 'number'
        ? { total, completed: succeeded ?? 0, failed: counts.failed_files_count ?? 0 }
        : null,
    error: state === 'failed' ? boundedError(error, mask) : null,
    lineErrors: [],
    isQuotaRefusal: false,
    // A failed job may have the results of some recordings.
    resultFiles: state === 'completed' || (hasEnded && named > 0) ? [`${externalId}/outputs`] : [],
    hasAllResults: state !== 'completed' || named >= (total ?? 1),
    usage: null,
  };
}

function fileOf({ inputs, outputs, ...end }: z.infer<typeof detail>): SarvamFile | null {
  const input = inputs?.[0]?.file_name;
  if (input === undefined) return null;
  const output = outputs?.[0]?.file_name ?? null;
  const reason = `${end.exception_name ?? ''} ${end.error_message ?? ''}`;
  const isUnreadable = end.state?.toLowerCase() === 'api error' && UNREADABLE.test(reason);
  return { input, output, isUnreadable };
}
