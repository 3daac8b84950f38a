import { randomInt } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import { invalid } from '../../request';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import type { StoredFile } from '../file-store';
import { hasEnded } from '../job-phases';
import type { JobInput, StoredJob } from '../job-store';
import { readCreate, type CreateRequest } from './create-request';
import { jobFilter } from './job-filter';
import { jobResource } from './job-resource';
import { linesOf, runLines } from './run-lines';

const MARKER = 'nightshift_job';
const BYTES_PER_TOKEN = 4;
/** Names have the number of the project, and not its id. */
const PROJECT_NUMBER = '123456789012';
const MAX_PAGE = 100;

/** `batchPredictionJobs.create`. */
export function createJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs, params } = call;
  const request = readCreate(call.body);
  const [uri = ''] = request.inputConfig.gcsSource.uris;
  const input = state.files.object(uri.replace('gs://', ''), nowMs);
  const tokens = Math.ceil((input?.bytes.length ?? 0) / BYTES_PER_TOKEN);
  const { max_enqueued_tokens: max } = state.settings;
  if (max > 0 && state.jobs.enqueuedTokens(nowMs) + tokens > max) {
    throw new NightshiftError('rate_limited', 'Quota exceeded for concurrent batch jobs.');
  }
  const end = state.jobs.nextEnd();
  const refusal = end === 'failed' ? 'The settings of the simulator refuse this.' : null;
  const message = input === undefined ? `No object ${uri} was found.` : refusal;
  const name = `projects/${PROJECT_NUMBER}/locations/${params[1] ?? ''}/batchPredictionJobs`;
  const job = state.jobs.add(
    {
      id: `${name}/${randomInt(10 ** 12, 10 ** 13)}`,
      request,
      marker: request.labels[MARKER] ?? null,
      end: message === null ? end : 'failed',
      errors:
        message === null ? [] : [{ code: 'invalid_request', message, param: null, line: null }],
      lines: input === undefined ? 0 : linesOf(input.bytes).length,
      tokens,
      run: input === undefined ? null : runOf(call, request, input),
    },
    nowMs,
  );
  return jsonAnswer(shown(job, call));
}

/** `batchPredictionJobs.list`, newest first, with a filter of labels. */
export function listJobs(call: ApiCall): ProviderAnswer {
  const { query, nowMs, state } = call;
  const { list_lag_ms: lagMs, max_page: cap } = state.settings;
  const isWanted = jobFilter(query.get('filter') ?? '');
  const listed = state.jobs
    .all(nowMs)
    .filter(({ id, createdMs }) => id.startsWith('projects/') && createdMs + lagMs <= nowMs)
    .filter(isWanted);
  const size = Number(query.get('pageSize') ?? MAX_PAGE);
  if (!(size >= 1 && size <= MAX_PAGE)) throw invalid('pageSize', 'Page size must be 1 to 100.');
  const start = Number(query.get('pageToken') ?? 0);
  const page = listed.slice(start, start + Math.min(size, cap));
  const next = start + page.length;
  return jsonAnswer({
    ...(page.length === 0 ? {} : { batchPredictionJobs: page.map((job) => shown(job, call)) }),
    ...(next < listed.length ? { nextPageToken: String(next) } : {}),
  });
}

/** `batchPredictionJobs.get`. */
export function retrieveJob(call: ApiCall): ProviderAnswer {
  return jsonAnswer(shown(jobOf(call), call));
}

/** `batchPredictionJobs.cancel`. */
export function cancelJob(call: ApiCall): ProviderAnswer {
  const job = jobOf(call);
  if (hasEnded(job.progress.phase)) {
    throw invalid('name', 'The job is in a terminal state and cannot be canceled.');
  }
  call.state.jobs.cancel(job, call.nowMs);
  return jsonAnswer({});
}

function runOf(call: ApiCall, request: CreateRequest, input: StoredFile): JobInput['run'] {
  const { outputUriPrefix } = request.outputConfig.gcsDestination;
  const modelName = request.model.split('/').at(-1) ?? '';
  return (answered, { sinceMs }, { results }) => {
    const at = new Date(sinceMs).toISOString();
    const folder = `${outputUriPrefix}/prediction-model-${at}`;
    const lines = linesOf(input.bytes);
    const run = { modelName, answered, processedMs: sinceMs, model: call.model, results };
    const { bytes, completed, failed } = runLines(lines, run);
    call.state.files.put(`${folder.replace('gs://', '')}/predictions.jsonl`, bytes, sinceMs);
    return { outputFile: folder, errorFile: null, completed, failed, usage: null };
  };
}

function jobOf({ params, nowMs, state }: ApiCall): StoredJob {
  const [project = '', location = '', id = ''] = params;
  const name = `projects/${PROJECT_NUMBER}/locations/${location}/batchPredictionJobs/${id}`;
  const job = state.jobs.get(name, nowMs);
  if (job !== undefined) return job;
  const message = `The BatchPredictionJob does not exist: projects/${project}/locations/${location}/batchPredictionJobs/${id}`;
  throw new NightshiftError('not_found', message);
}

function shown(job: StoredJob, { state, nowMs }: ApiCall): Readonly<Record<string, unknown>> {
  return jobResource(job, state.settings, nowMs);
}
