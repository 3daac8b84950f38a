import { randomInt } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import { invalid } from '../../request';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import { shuffled } from '../result-files';
import type { ProviderSettings } from '../settings';
import { readRecognize, type RecognizeRequest } from './recognize-request';
import { transcriptFile } from './transcript-file';

/** In the output of a job that Nightshift has created. */
const MARKER = /job_[0-9a-f]{32}/;
const TYPE = 'type.googleapis.com/google.cloud.speech.v2';
const MAX_PAGE = 100;
const BYTES_PER_TOKEN = 4;

/** A request, with the recordings that the settings blame. */
interface Recognition {
  readonly request: RecognizeRequest;
  readonly unreadable: readonly string[];
}

/** `recognizers.batchRecognize`. */
export function createJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs, params } = call;
  const request = readRecognize(call.body);
  const uris = request.files.map(({ uri }) => uri);
  const audio = uris.flatMap((uri) => objectAt(call, uri) ?? []);
  const end = state.jobs.nextEnd();
  const { failed_lines: lines } = state.settings;
  const isFailure = end === 'failed';
  const unreadable = isFailure ? uris.filter((_, index) => lines.includes(index + 1)) : [];
  const id = `projects/${params[0] ?? ''}/locations/${params[1] ?? ''}/operations/${randomInt(10 ** 12)}`;
  const recognition = { request, unreadable };
  const job = state.jobs.add(
    {
      id,
      request: { ...recognition },
      marker: MARKER.exec(request.recognitionOutputConfig.gcsOutputConfig.uri)?.[0] ?? null,
      end: unreadable.length > 0 ? 'completed' : end,
      errors: [],
      lines: uris.length,
      tokens: audio.reduce((sum, bytes) => sum + Math.ceil(bytes.length / BYTES_PER_TOKEN), 0),
      run: (_, { sinceMs }, settings) =>
        recognizeAll(call, { id, ...recognition }, { sinceMs, faults: settings.results }),
    },
    nowMs,
  );
  return jsonAnswer(shown(job, call));
}

/** `operations.list`, newest first. */
export function listOperations(call: ApiCall): ProviderAnswer {
  const { query, nowMs, state, params } = call;
  const { list_lag_ms: lagMs, max_page: cap } = state.settings;
  const parent = `projects/${params[0] ?? ''}/locations/${params[1] ?? ''}/operations/`;
  const listed = state.jobs
    .all(nowMs)
    .filter(({ id, createdMs }) => id.startsWith(parent) && createdMs + lagMs <= nowMs);
  const size = Math.min(Number(query.get('pageSize') ?? MAX_PAGE), cap);
  const start = Number(query.get('pageToken') ?? 0);
  const page = listed.slice(start, start + size);
  const next = start + page.length;
  return jsonAnswer({
    ...(page.length === 0 ? {} : { operations: page.map((job) => shown(job, call)) }),
    ...(next < listed.length ? { nextPageToken: String(next) } : {}),
  });
}

/** `operations.get`. */
export function getOperation(call: ApiCall): ProviderAnswer {
  return jsonAnswer(shown(jobOf(call), call));
}

/** `operations.cancel`. */
export function cancelOperation(call: ApiCall): ProviderAnswer {
  const job = jobOf(call);
  if (hasEnded(job.progress.phase)) throw invalid('name', 'The operation is already done.');
  call.state.jobs.cancel(job, call.nowMs);
  return jsonAnswer({});
}

function jobOf({ params, nowMs, state }: ApiCall): StoredJob {
  const [project = '', location = '', id = ''] = params;
  const name = `projects/${project}/locations/${location}/operations/${id}`;
  const job = state.jobs.get(name, nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', `Operation ${name} was not found.`);
}

function shown(job: StoredJob, call: ApiCall): Readonly<Record<string, unknown>> {
  const { id, createdMs, progress } = job;
  const { phase, sinceMs } = progress;
  const { request } = job.request as unknown as Recognition;
  const metadata = {
    '@type': `${TYPE}.OperationMetadata`,
    createTime: new Date(createdMs).toISOString(),
    updateTime: new Date(sinceMs).toISOString(),
    method: 'google.cloud.speech.v2.Speech.BatchRecognize',
    batchRecognizeRequest: request,
    progressPercent: hasEnded(phase) ? 100 : 0,
  };
  return {
    name: id,
    metadata,
    ...(hasEnded(phase) ? { done: true } : {}),
    ...(phase === 'completed' ? { response: responseOf(job, call) } : {}),
    ...(hasEnded(phase) && phase !== 'completed' ? { error: errorOf(phase) } : {}),
  };
}

function errorOf(phase: StoredJob['progress']['phase']) {
  if (phase === 'cancelled') return { code: 1, message: 'The operation was cancelled.' };
  return { code: 13, message: 'The settings of the simulator let this fail.' };
}

/** The results by the addresses of the recordings. */
function responseOf(job: StoredJob, { nowMs, state }: ApiCall) {
  const { request, unreadable } = job.request as unknown as Recognition;
  const isShown = nowMs >= job.progress.sinceMs + state.settings.results_lag_ms;
  const entries = request.files.flatMap(({ uri }): [string, unknown][] => {
    const output = outputOf(job.id, request, uri);
    const hasTranscript = state.files.object(nameOf(output), nowMs) !== undefined;
    if (unreadable.includes(uri)) {
      return [[uri, { error: { code: 3, message: 'Audio could not be decoded.' } }]];
    }
    if (!isShown) return [[uri, {}]];
    return hasTranscript ? [[uri, { uri: output, cloudStorageResult: { uri: output } }]] : [];
  });
  return { '@type': `${TYPE}.BatchRecognizeResponse`, results: Object.fromEntries(entries) };
}

function recognizeAll(
  call: ApiCall,
  { id, request, unreadable }: Recognition & { readonly id: string },
  { sinceMs, faults }: { readonly sinceMs: number; readonly faults: ProviderSettings['results'] },
): JobOutcome {
  const read = request.files.flatMap(({ uri }) => {
    const audio = unreadable.includes(uri) ? undefined : objectAt(call, uri);
    return audio === undefined ? [] : [{ uri, audio }];
  });
  const listed = faults.includes('shuffled') ? shuffled(read) : read;
  const kept = faults.includes('missing') ? listed.slice(1) : listed;
  kept.forEach(({ uri, audio }, index) => {
    const whole = transcriptFile(audio, request.config.languageCodes[0] ?? '');
    const isCut = faults.includes('cut_off') && index === kept.length - 1;
    const bytes = isCut ? whole.subarray(0, whole.length / 2) : whole;
    call.state.files.put(nameOf(outputOf(id, request, uri)), bytes, sinceMs);
  });
  const failed = request.files.length - read.length;
  return { outputFile: id, errorFile: null, completed: read.length, failed, usage: null };
}

/** The service names transcripts after recordings, without their extension. */
function outputOf(id: string, request: RecognizeRequest, uri: string): string {
  const base =
    uri
      .split('/')
      .at(-1)
      ?.replace(/\.[^.]*$/, '') ?? '';
  const prefix = request.recognitionOutputConfig.gcsOutputConfig.uri.replace(/\/$/, '');
  return `${prefix}/${base}_transcript_${id.split('/').at(-1) ?? ''}.json`;
}

function objectAt({ state, nowMs }: ApiCall, uri: string): Buffer | undefined {
  return state.files.object(nameOf(uri), nowMs)?.bytes;
}

function nameOf(uri: string): string {
  return uri.replace('gs://', '');
}
