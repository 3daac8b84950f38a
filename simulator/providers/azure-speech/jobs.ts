import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobPhase } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import { shuffled } from '../result-files';
import type { ProviderSettings } from '../settings';
import { reportFile, transcriptionFile, type SpeechSource } from './result-files';
import { readSubmit, type SubmitRequest } from './submit-request';

/** In the name of a job that Nightshift has submitted. */
const MARKER = /job_[0-9a-f]{32}/;
/** The container of the service, which holds the results. */
const RESULTS = 'speech-results';
const BYTES_PER_TOKEN = 4;
const FAILURE = { code: 'InternalServerError', message: 'The transcription could not be run.' };

/** Submits a job. Names need not be unique. */
export function submitJob(call: ApiCall): ProviderAnswer {
  const { state, nowMs } = call;
  const request = readSubmit(call.body);
  const sources = sourcesOf(call, request);
  const bytes = sources.reduce((sum, { audio }) => sum + (audio?.length ?? 0), 0);
  const end = state.jobs.nextEnd();
  const { failed_lines: lines } = state.settings;
  const fails = end !== 'completed' && lines.length === 0;
  const read = sources.map((source, index) => {
    return { ...source, isUnreadable: end !== 'completed' && lines.includes(index + 1) };
  });
  const id = randomUUID();
  const job = state.jobs.add(
    {
      id,
      request,
      marker: MARKER.exec(request.displayName)?.[0] ?? null,
      end: fails ? 'failed' : 'completed',
      errors: [],
      lines: sources.length,
      tokens: Math.ceil(bytes / BYTES_PER_TOKEN),
      run: (_, { sinceMs }, settings) =>
        transcribe(call, { id, request, sources: read }, { sinceMs, faults: settings.results }),
    },
    nowMs,
  );
  const answer = jsonAnswer(shown(job, call), 201);
  return { ...answer, headers: { location: addressOf(job, call) } };
}

/** Shows a job. */
export function getJob(call: ApiCall): ProviderAnswer {
  return jsonAnswer(shown(jobOf(call), call));
}

/** Lists jobs, newest first. */
export function listJobs(call: ApiCall): ProviderAnswer {
  const { state, query, nowMs } = call;
  const isListed = filterOf(query.get('filter'));
  const { list_lag_ms: lagMs } = state.settings;
  const jobs = state.jobs
    .all(nowMs)
    .filter(({ createdMs, request }) => createdMs + lagMs <= nowMs && 'displayName' in request)
    .filter(isListed);
  return jsonAnswer(pageOf(jobs, call, (job) => shown(job, call)));
}

/** A filter of the list, as far as the simulator supports it. @throws invalid_request */
function filterOf(filter: string | null): (job: StoredJob) => boolean {
  if (filter === null) return () => true;
  const name = /^displayName eq '([^']*)'$/.exec(filter)?.[1];
  if (name !== undefined) return ({ request }) => request['displayName'] === name;
  const sinceMs = Date.parse(/^createdDateTime ge (\S+Z)$/.exec(filter)?.[1] ?? '');
  if (!Number.isNaN(sinceMs)) return ({ createdMs }) => createdMs >= sinceMs;
  throw new NightshiftError('invalid_request', 'The filter is not supported.');
}

/** Lists the files of a job, which has none before its end. */
export function listFiles(call: ApiCall): ProviderAnswer {
  const { id, progress } = jobOf(call);
  const { state, nowMs, baseUrl } = call;
  const isShown = nowMs >= progress.sinceMs + state.settings.results_lag_ms;
  const files = isShown ? state.files.objects(`${RESULTS}/${id}/`, nowMs) : [];
  const storage = new URL('../azure-blob/', `${baseUrl}/`).href;
  // The address of a result carries a signature, which here is a key that the settings accept.
  const signature = encodeURIComponent(state.settings.keys[0] ?? 'signed');
  const page = pageOf(files, call, ({ name, bytes }) => {
    const file = name.split('/').at(-1) ?? '';
    const kind = file === 'report.json' ? 'TranscriptionReport' : 'Transcription';
    const contentUrl = `${storage}${name}?sv=2021-12-02&sig=${signature}`;
    return { name: file, kind, links: { contentUrl }, properties: { size: bytes.length } };
  });
  return jsonAnswer(page);
}

/** Deletes a job with its results. */
export function deleteJob(call: ApiCall): ProviderAnswer {
  const { id } = jobOf(call);
  const { jobs, files } = call.state;
  for (const file of files.objects(`${RESULTS}/${id}/`, call.nowMs)) files.delete(file.id);
  jobs.remove(id);
  return { status: 204, contentType: 'application/json', bytes: Buffer.alloc(0) };
}

function pageOf<Entry>(
  entries: readonly Entry[],
  { query, state, baseUrl }: ApiCall,
  show: (entry: Entry) => unknown,
): unknown {
  const skip = Number(query.get('skip') ?? 0);
  const top = Math.min(Number(query.get('top') ?? 100), state.settings.max_page);
  const values = entries.slice(skip, skip + top).map(show);
  const isLast = skip + values.length >= entries.length;
  return { values, ...(isLast ? {} : { '@nextLink': `${baseUrl}?skip=${skip + top}&top=${top}` }) };
}

function jobOf({ id, nowMs, state }: ApiCall): StoredJob {
  const job = state.jobs.get(id, nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', 'The specified entity cannot be found.');
}

/** The recordings of a request, as they are now. */
function sourcesOf(
  { state, nowMs, baseUrl }: ApiCall,
  { contentUrls }: SubmitRequest,
): readonly SpeechSource[] {
  const storage = new URL('../azure-blob/', `${baseUrl}/`).pathname;
  return contentUrls.map((url) => {
    const { pathname } = new URL(url);
    const name = decodeURIComponent(pathname.slice(storage.length));
    const audio = state.files.object(name, nowMs)?.bytes ?? null;
    return {
      url,
      audio: pathname.startsWith(storage) ? audio : null,
      isUnreadable: false,
      isLost: false,
    };
  });
}

function shown(job: StoredJob, call: ApiCall): Record<string, unknown> {
  const { request, createdMs, progress } = job;
  const { phase, sinceMs } = progress;
  const { displayName, locale, properties } = request as unknown as SubmitRequest;
  const self = addressOf(job, call);
  return {
    self,
    displayName,
    locale,
    status: wordOf(phase, call.state.settings),
    createdDateTime: new Date(createdMs).toISOString(),
    lastActionDateTime: new Date(sinceMs).toISOString(),
    links: { files: self.replace('?', '/files?') },
    properties: { ...properties, ...(phase === 'failed' ? { error: FAILURE } : {}) },
  };
}

function addressOf({ id }: StoredJob, { baseUrl, query }: ApiCall): string {
  const version = query.get('api-version') ?? '';
  return `${baseUrl}/speechtotext/transcriptions/${id}?api-version=${version}`;
}

function wordOf(phase: JobPhase, { running_word: runningWord }: ProviderSettings): string {
  if (phase === 'validating') return 'NotStarted';
  if (phase === 'completed') return 'Succeeded';
  if (hasEnded(phase)) return 'Failed';
  return runningWord === 'in_progress' ? 'Running' : runningWord;
}

function transcribe(
  { state }: ApiCall,
  job: {
    readonly id: string;
    readonly request: SubmitRequest;
    readonly sources: readonly SpeechSource[];
  },
  { sinceMs, faults }: { readonly sinceMs: number; readonly faults: ProviderSettings['results'] },
): JobOutcome {
  const { id, request } = job;
  const sources = job.sources.map((source, index) => {
    return { ...source, isLost: faults.includes('missing') && index === 0 };
  });
  const read = sources.flatMap(({ url, audio, isUnreadable, isLost }) =>
    audio === null || isUnreadable || isLost ? [] : [{ url, audio }],
  );
  const listed = faults.includes('shuffled') ? shuffled(read) : read;
  listed.forEach(({ url, audio }, index) => {
    const whole = transcriptionFile(url, audio, request.locale);
    const isCut = faults.includes('cut_off') && index === listed.length - 1;
    const bytes = isCut ? whole.subarray(0, whole.length / 2) : whole;
    state.files.put(`${RESULTS}/${id}/contenturl_${index}.json`, bytes, sinceMs);
  });
  state.files.put(`${RESULTS}/${id}/report.json`, reportFile(sources), sinceMs);
  const failed = sources.length - read.length;
  return { outputFile: id, errorFile: null, completed: read.length, failed, usage: null };
}
