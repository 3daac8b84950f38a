import { NightshiftError } from '../../../core/errors';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobPhase } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';
import { readJobName, readList, readStart, type StartRequest } from './start-request';
import { transcriptFile } from './transcript-file';

/** In the name of a job that Nightshift has started. */
const MARKER = /job_[0-9a-f]{32}/;
const BYTES_PER_TOKEN = 4;
const BAD_MEDIA =
  'Unsupported media format. Choose a supported media format and try your request again.';

/** `StartTranscriptionJob`. A name that is taken is refused, as long as its job is not deleted. */
export function startJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const request = readStart(call.body);
  const { TranscriptionJobName: name, Media: media } = request;
  if (state.jobs.get(name, nowMs) !== undefined) {
    throw new NightshiftError('conflict', 'The requested job name already exists.');
  }
  const audio = state.files.object(objectOf(media.MediaFileUri), nowMs);
  if (audio === undefined) {
    throw new NightshiftError(
      'invalid_request',
      "The S3 URI that you provided can't be accessed. Make sure that you have read permission and try your request again.",
    );
  }
  const tokens = Math.ceil(audio.bytes.length / BYTES_PER_TOKEN);
  refuseOverQuota(call, tokens);
  const end = state.jobs.nextEnd();
  const reason = end === 'completed' ? null : failureReason(state.settings);
  const job = state.jobs.add(
    {
      id: name,
      request,
      marker: MARKER.exec(name)?.[0] ?? null,
      end: reason === null ? 'completed' : 'failed',
      errors:
        reason === null ? [] : [{ code: 'invalid_request', message: reason, param: null, line: 1 }],
      lines: 1,
      tokens,
      run: (answered, progress, settings) =>
        transcribe(call, { request, audio: audio.bytes }, { answered, settings, progress }),
    },
    nowMs,
  );
  return jsonAnswer({ TranscriptionJob: shown(job, call) });
}

/** `GetTranscriptionJob`. */
export function getJob(call: ApiCall): ProviderAnswer {
  return jsonAnswer({ TranscriptionJob: shown(jobOf(call), call) });
}

/** `ListTranscriptionJobs`, newest first. */
export function listJobs(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const { after, limit, text, status } = readList(call.body);
  const { list_lag_ms: lagMs, max_page: cap } = state.settings;
  const listed = state.jobs
    .all(nowMs)
    .filter(({ id, createdMs }) => createdMs + lagMs <= nowMs && id.includes(text))
    .filter(({ progress: { phase } }) =>
      status === undefined ? true : wordOf(phase, state.settings) === status,
    );
  const start = after === '' ? 0 : listed.findIndex(({ id }) => id === after) + 1;
  const page = listed.slice(start, start + Math.min(limit, cap));
  const isLast = start + page.length >= listed.length;
  return jsonAnswer({
    TranscriptionJobSummaries: page.map((job) => shown(job, call)),
    ...(isLast ? {} : { NextToken: page.at(-1)?.id }),
  });
}

/** `DeleteTranscriptionJob`. Its transcript stays in the bucket. */
export function deleteJob(call: ApiCall): ProviderAnswer {
  const job = jobOf(call);
  if (!hasEnded(job.progress.phase)) {
    throw new NightshiftError('invalid_request', 'The job is in a non-terminal state.');
  }
  call.state.jobs.remove(job.id);
  return jsonAnswer({});
}

function jobOf({ body, nowMs, state }: ApiCall): StoredJob {
  const job = state.jobs.get(readJobName(body), nowMs);
  if (job !== undefined) return job;
  const message =
    "The requested job couldn't be found. Check the job name and try your request again.";
  throw new NightshiftError('not_found', message);
}

function refuseOverQuota({ state, nowMs }: ApiCall, tokens: number): void {
  const { max_enqueued_tokens: max } = state.settings;
  if (max === 0 || state.jobs.enqueuedTokens(nowMs) + tokens <= max) return;
  throw new NightshiftError('rate_limited', 'You have too many transcription jobs in progress.');
}

function failureReason({ failed_lines: lines }: ProviderSettings): string {
  return lines.length === 0 ? 'Internal service error. Try your request again.' : BAD_MEDIA;
}

function shown(job: StoredJob, { state, nowMs }: ApiCall): Record<string, unknown> {
  const { id, createdMs, errors, progress } = job;
  const { phase, times, sinceMs } = progress;
  const request = job.request as unknown as StartRequest;
  const isFailed = phase === 'failed';
  const hasFile = phase === 'completed' && nowMs >= sinceMs + state.settings.results_lag_ms;
  const place = `${request.OutputBucketName}/${request.OutputKey}`;
  return {
    TranscriptionJobName: id,
    TranscriptionJobStatus: wordOf(phase, state.settings),
    LanguageCode: request.LanguageCode ?? (hasEnded(phase) ? 'en-US' : undefined),
    IdentifyLanguage: request.IdentifyLanguage,
    Media: request.Media,
    Transcript: hasFile ? { TranscriptFileUri: `https://s3.amazonaws.com/${place}` } : undefined,
    FailureReason: isFailed ? errors[0]?.message : undefined,
    CreationTime: createdMs / 1_000,
    StartTime: times.in_progress === undefined ? undefined : times.in_progress / 1_000,
    CompletionTime: hasEnded(phase) ? sinceMs / 1_000 : undefined,
  };
}

function wordOf(phase: JobPhase, { running_word: runningWord }: ProviderSettings): string {
  if (phase === 'validating') return 'QUEUED';
  if (phase === 'completed') return 'COMPLETED';
  if (hasEnded(phase)) return 'FAILED';
  return runningWord === 'in_progress' ? 'IN_PROGRESS' : runningWord;
}

function transcribe(
  { state }: ApiCall,
  { request, audio }: { readonly request: StartRequest; readonly audio: Buffer },
  end: {
    readonly answered: number;
    readonly progress: { readonly sinceMs: number };
    readonly settings: ProviderSettings;
  },
): JobOutcome {
  const { OutputBucketName: bucket, OutputKey: key, TranscriptionJobName: name } = request;
  const { results: faults } = end.settings;
  const whole = transcriptFile(name, audio, request.LanguageCode ?? 'en-US');
  const bytes = faults.includes('cut_off') ? whole.subarray(0, whole.length / 2) : whole;
  const object = `${bucket}/${key}`;
  if (!faults.includes('missing')) state.files.put(object, bytes, end.progress.sinceMs);
  return { outputFile: object, errorFile: null, completed: end.answered, failed: 0, usage: null };
}

/** The bucket and key of an S3 URI, as the simulator names objects. */
function objectOf(uri: string): string {
  return uri.slice('s3://'.length);
}
