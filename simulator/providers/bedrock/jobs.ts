import { randomBytes } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import type { SimulatorSettings } from '../../settings';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobPhase, type JobProgress } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import { outputFile } from '../result-files';
import type { ProviderSettings } from '../settings';
import { readCreate, type CreateRequest } from './create-request';
import { readRecords, runRecord, type BatchRecord } from './records';

const ACCOUNT = 'arn:aws:bedrock:eu-central-1:000000000000';
/** In the name of a job that Nightshift has created. */
const MARKER = /^ns-\w+-([0-9a-f]{32})$/;
const BYTES_PER_TOKEN = 4;
const MAX_PAGE = 1_000;
const FOREIGN = JSON.stringify({
  recordId: 'someone-elses-line',
  modelInput: {},
  error: { errorCode: 400, errorMessage: 'no' },
});
/** The purpose of results that are not in the bucket yet. */
const PENDING = 'pending';

/** `CreateModelInvocationJob`. A token that was used is answered with its job. */
export function createJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const request = readCreate(call.body);
  const { clientRequestToken: token } = request;
  const earlier = state.jobs
    .all(nowMs)
    .find((job) => (job.request as unknown as CreateRequest).clientRequestToken === token);
  if (earlier !== undefined) return jsonAnswer({ jobArn: earlier.id });
  const input = state.files.object(objectOf(inputUri(request)), nowMs);
  if (input === undefined) {
    throw new NightshiftError('invalid_request', 'The provided S3 URI has no objects.');
  }
  const tokens = Math.ceil(input.bytes.length / BYTES_PER_TOKEN);
  refuseOverQuota(call, tokens);
  const records = readRecords(input.bytes);
  const end = state.jobs.nextEnd();
  const message = records === null ? 'The input has malformed records.' : askedFailure(end);
  const job = state.jobs.add(
    {
      id: `${ACCOUNT}:model-invocation-job/${randomBytes(6).toString('hex')}`,
      request,
      marker: markerOf(request.jobName),
      end: message === null ? end : 'failed',
      errors:
        message === null ? [] : [{ code: 'invalid_request', message, param: null, line: null }],
      lines: records?.length ?? 0,
      tokens,
      run: (answered, progress, settings) =>
        runJob(
          call,
          { request, records: (records ?? []).slice(0, answered) },
          { progress, settings },
        ),
    },
    nowMs,
  );
  return jsonAnswer({ jobArn: job.id });
}

/** `GetModelInvocationJob`. Results that are due are in the bucket from this look on. */
export function getJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const job = jobOf(call);
  const { phase, sinceMs } = job.progress;
  if (hasEnded(phase) && nowMs >= sinceMs + state.settings.results_lag_ms) publish(job, call);
  return jsonAnswer(shown(job, state.settings));
}

/** `ListModelInvocationJobs`, newest first. */
export function listJobs({ query, nowMs, state }: ApiCall): ProviderAnswer {
  const { list_lag_ms: lagMs, max_page: cap } = state.settings;
  const part = query.get('nameContains') ?? '';
  const after = Date.parse(query.get('submitTimeAfter') ?? '') || 0;
  const listed = state.jobs
    .all(nowMs)
    .filter(({ createdMs }) => createdMs + lagMs <= nowMs && createdMs > after)
    .filter(({ request }) => (request as unknown as CreateRequest).jobName.includes(part));
  const token = query.get('nextToken');
  const start = token === null ? 0 : listed.findIndex(({ id }) => id === token) + 1;
  const size = Math.min(Number(query.get('maxResults') ?? MAX_PAGE), cap);
  const page = listed.slice(start, start + size);
  const isLast = start + page.length >= listed.length;
  return jsonAnswer({
    invocationJobSummaries: page.map((job) => shown(job, state.settings)),
    ...(isLast ? {} : { nextToken: page.at(-1)?.id }),
  });
}

/** `StopModelInvocationJob`. */
export function stopJob(call: ApiCall): ProviderAnswer {
  const job = jobOf(call);
  if (hasEnded(job.progress.phase)) {
    throw new NightshiftError('conflict', 'The job is in a state in which it cannot be stopped.');
  }
  call.state.jobs.cancel(job, call.nowMs);
  return jsonAnswer({});
}

function jobOf({ id, nowMs, state }: ApiCall): StoredJob {
  const job = state.jobs.get(id, nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', 'Could not find the requested batch inference job.');
}

function markerOf(name: string): string | null {
  const digits = MARKER.exec(name)?.[1];
  return digits === undefined ? null : `job_${digits}`;
}

function refuseOverQuota({ state, nowMs }: ApiCall, tokens: number): void {
  const { max_enqueued_tokens: max } = state.settings;
  if (max === 0 || state.jobs.enqueuedTokens(nowMs) + tokens <= max) return;
  const message = 'You have reached the limit of submitted and in-progress jobs of this model.';
  throw new NightshiftError('rate_limited', message);
}

/** A job blames no lines. */
function askedFailure(end: string): string | null {
  return end === 'failed' ? 'The settings of the simulator refuse this.' : null;
}

function shown(job: StoredJob, settings: ProviderSettings): Record<string, unknown> {
  const { id: jobArn, createdMs, errors, progress, outcome, lines } = job;
  const { phase, sinceMs } = progress;
  const request = job.request as unknown as CreateRequest;
  const { completed = 0, failed = 0 } = outcome ?? {};
  return {
    ...request,
    jobArn,
    status: wordOf(progress, settings),
    message: phase === 'failed' ? errors[0]?.message : undefined,
    submitTime: new Date(createdMs).toISOString(),
    endTime: hasEnded(phase) ? new Date(sinceMs).toISOString() : undefined,
    totalRecordCount: lines,
    processedRecordCount: completed + failed,
    successRecordCount: completed,
    errorRecordCount: failed,
  };
}

const WORDS: Readonly<Record<JobPhase, string>> = {
  validating: 'Validating',
  in_progress: 'InProgress',
  finalizing: 'InProgress',
  cancelling: 'Stopping',
  completed: 'Completed',
  failed: 'Failed',
  expired: 'PartiallyCompleted',
  cancelled: 'Stopped',
};

function wordOf({ phase }: JobProgress, { running_word: word }: ProviderSettings): string {
  return phase === 'in_progress' && word !== 'in_progress' ? word : WORDS[phase];
}

function runJob(
  { state, model }: ApiCall,
  job: { readonly request: CreateRequest; readonly records: readonly BatchRecord[] },
  { progress, settings }: { readonly progress: JobProgress; readonly settings: ProviderSettings },
): JobOutcome {
  const { request, records } = job;
  const { ends, manifest } = runRecords(records, request.modelId, model);
  const lines = ends.map(({ line }) => line);
  const place = objectOf(request.outputDataConfig.s3OutputDataConfig.s3Uri);
  const folder = `${place}${randomBytes(6).toString('hex')}`;
  const name = inputUri(request).split('/').at(-1) ?? '';
  const save = (file: string, bytes: Buffer): string => {
    const pending = { name: `${folder}/${file}`, purpose: PENDING, bytes };
    return state.files.add({ ...pending, createdMs: progress.sinceMs }, null).id;
  };
  const output = outputFile(lines, settings.results, FOREIGN);
  return {
    outputFile: lines.length === 0 ? null : save(`${name}.out`, output),
    errorFile:
      lines.length === 0 ? null : save('manifest.json.out', Buffer.from(JSON.stringify(manifest))),
    completed: manifest.successRecordCount,
    failed: manifest.errorRecordCount,
    usage: null,
  };
}

function runRecords(records: readonly BatchRecord[], modelId: string, model: SimulatorSettings) {
  const ends = records.map((record) => runRecord(record, modelId, model));
  const successRecordCount = ends.filter(({ isAnswer }) => isAnswer).length;
  const manifest = {
    totalRecordCount: ends.length,
    processedRecordCount: ends.length,
    successRecordCount,
    errorRecordCount: ends.length - successRecordCount,
    inputTokenCount: ends.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
    outputTokenCount: ends.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
  };
  return { ends, manifest };
}

/** Moves the results of a job into the bucket. */
function publish({ outcome }: StoredJob, { state, nowMs }: ApiCall): void {
  for (const id of [outcome?.outputFile, outcome?.errorFile]) {
    const file = state.files.get(id ?? '', nowMs);
    if (file?.purpose !== PENDING) continue;
    state.files.put(file.name, file.bytes, nowMs);
    state.files.delete(file.id);
  }
}

function inputUri({ inputDataConfig }: CreateRequest): string {
  return inputDataConfig.s3InputDataConfig.s3Uri;
}

/** The bucket and key of an S3 URI, as the simulator names objects. */
function objectOf(uri: string): string {
  return uri.slice('s3://'.length);
}
