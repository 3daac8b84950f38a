import { randomUUID } from 'node:crypto';
import { NightshiftError } from '../../../core/errors';
import { jsonAnswer, type ProviderAnswer } from '../answer';
import type { ApiCall } from '../fake-api';
import { hasEnded, type JobPhase } from '../job-phases';
import type { JobOutcome, StoredJob } from '../job-store';
import type { ProviderSettings } from '../settings';
import { recognize } from '../speech/recognizer';
import { readFiles, readInitiate, type JobParameters } from './job-request';

/** The container of the service. */
const CONTAINER = 'sarvam';
const BYTES_PER_TOKEN = 4;

/** A recording, and what becomes of it. */
interface SarvamRecording {
  readonly name: string;
  readonly audio: Buffer;
  readonly isUnreadable: boolean;
}

/** What a job was initiated with, as an object of the container. */
function initiationOf(id: string): string {
  return `${CONTAINER}/${id}/job.json`;
}

/** Makes a job that does nothing before it is started. */
export function initiateJob({ body, state, nowMs }: ApiCall): ProviderAnswer {
  const parameters = readInitiate(body);
  const id = `${new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '')}_${randomUUID()}`;
  state.files.put(initiationOf(id), Buffer.from(JSON.stringify(parameters)), nowMs);
  const job = { job_id: id, job_parameters: {}, job_state: 'Accepted' };
  return jsonAnswer({ ...job, storage_container_type: 'Azure' }, 202);
}

/** Signs addresses for the recordings of a job. */
export function uploadFiles(call: ApiCall): ProviderAnswer {
  const { id, files } = readFiles(call.body);
  requireInitiated(id, call);
  const upload_urls = addressesOf(`${id}/inputs`, files, call);
  return jsonAnswer({ ...headOf(id), job_state: 'Accepted', upload_urls });
}

/** Signs addresses for the results of a job. */
export function downloadFiles(call: ApiCall): ProviderAnswer {
  const { id, files } = readFiles(call.body);
  const { phase } = jobOf(id, call).progress;
  if (!hasEnded(phase)) throw new NightshiftError('invalid_request', 'The job is not complete.');
  const download_urls = addressesOf(`${id}/outputs`, files, call);
  return jsonAnswer({
    ...headOf(id),
    job_state: wordOf(phase, call.state.settings),
    download_urls,
  });
}

/** Starts a job. A job that was started is refused. */
export function startJob(call: ApiCall): ProviderAnswer {
  const { id, state, nowMs } = call;
  const parameters = requireInitiated(id, call);
  if (state.jobs.get(id, nowMs) !== undefined) {
    throw new NightshiftError('invalid_request', 'The job was started before.');
  }
  const stored = state.files.objects(`${CONTAINER}/${id}/inputs/`, nowMs);
  if (stored.length === 0) throw new NightshiftError('invalid_request', 'The job has no files.');
  const end = state.jobs.nextEnd();
  const { failed_lines: lines } = state.settings;
  const recordings = stored.map(({ name, bytes }, index) => ({
    name: name.split('/').at(-1) ?? '',
    audio: bytes,
    isUnreadable: end !== 'completed' && lines.includes(index + 1),
  }));
  const bytes = recordings.reduce((sum, { audio }) => sum + audio.length, 0);
  const job = state.jobs.add(
    {
      id,
      request: { recordings },
      // Nothing of the client is kept but the names of its files.
      marker: recordings[0]?.name ?? null,
      end: end !== 'completed' && lines.length === 0 ? 'failed' : 'completed',
      errors: [],
      lines: recordings.length,
      tokens: Math.ceil(bytes / BYTES_PER_TOKEN),
      run: (_, { sinceMs }, settings) =>
        transcribe(call, { id, parameters, recordings }, { sinceMs, faults: settings.results }),
    },
    nowMs,
  );
  return jsonAnswer(shown(job, call));
}

/** Shows a job, started or not. */
export function getJob(call: ApiCall): ProviderAnswer {
  const { id, state, nowMs } = call;
  const job = state.jobs.get(id, nowMs);
  if (job !== undefined) return jsonAnswer(shown(job, call));
  requireInitiated(id, call);
  return jsonAnswer({ ...headOf(id), job_state: 'Accepted' });
}

function headOf(id: string) {
  return { job_id: id, storage_container_type: 'Azure' };
}

function requireInitiated(id: string, { state, nowMs }: ApiCall): JobParameters {
  const initiation = state.files.object(initiationOf(id), nowMs);
  if (initiation === undefined) throw new NightshiftError('not_found', `Job ${id} not found.`);
  return JSON.parse(initiation.bytes.toString()) as JobParameters;
}

function jobOf(id: string, { state, nowMs }: ApiCall): StoredJob {
  const job = state.jobs.get(id, nowMs);
  if (job !== undefined) return job;
  throw new NightshiftError('not_found', `Job ${id} not found.`);
}

function addressesOf(folder: string, files: readonly string[], { baseUrl, state }: ApiCall) {
  const storage = new URL(`../azure-blob/${CONTAINER}/${folder}/`, `${baseUrl}/`).href;
  // An address carries a signature, which here is a key that the settings accept.
  const query = `sv=2021-12-02&sig=${encodeURIComponent(state.settings.keys[0] ?? 'signed')}`;
  return Object.fromEntries(
    files.map((file) => [file, { file_url: `${storage}${encodeURIComponent(file)}?${query}` }]),
  );
}

function shown(job: StoredJob, { state, nowMs }: ApiCall): Record<string, unknown> {
  const { id, createdMs, lines, outcome, progress } = job;
  const { phase, sinceMs } = progress;
  const isShown = outcome !== null && nowMs >= sinceMs + state.settings.results_lag_ms;
  const { recordings } = job.request as { readonly recordings: readonly SarvamRecording[] };
  return {
    ...headOf(id),
    job_state: wordOf(phase, state.settings),
    created_at: new Date(createdMs).toISOString(),
    updated_at: new Date(sinceMs).toISOString(),
    total_files: lines,
    successful_files_count: outcome?.completed ?? 0,
    failed_files_count: outcome?.failed ?? 0,
    error_message: phase === 'failed' ? 'The job could not be run.' : '',
    job_details: isShown ? recordings.map(detailOf) : [],
  };
}

function detailOf({ name, isUnreadable }: SarvamRecording, index: number) {
  const inputs = [{ file_name: name, file_id: String(index) }];
  if (!isUnreadable) {
    const outputs = [{ file_name: `${index}.json`, file_id: String(index) }];
    return { inputs, outputs, state: 'Success', error_message: '', exception_name: null };
  }
  const error = { error_message: 'The audio cannot be read.', exception_name: 'BadRequestError' };
  return { inputs, outputs: [], state: 'API Error', ...error };
}

function wordOf(phase: JobPhase, { running_word: runningWord }: ProviderSettings): string {
  if (phase === 'validating') return 'Pending';
  if (phase === 'completed') return 'Completed';
  if (hasEnded(phase)) return 'Failed';
  return runningWord === 'in_progress' ? 'Running' : runningWord;
}

function transcribe(
  { state }: ApiCall,
  job: {
    readonly id: string;
    readonly parameters: JobParameters;
    readonly recordings: readonly SarvamRecording[];
  },
  { sinceMs, faults }: { readonly sinceMs: number; readonly faults: ProviderSettings['results'] },
): JobOutcome {
  const { id, parameters, recordings } = job;
  const { language_code: language = 'unknown' } = parameters;
  const readable = recordings.filter(({ isUnreadable }) => !isUnreadable);
  recordings.forEach(({ audio, isUnreadable }, index) => {
    const isMissing = faults.includes('missing') && index === 0;
    if (isUnreadable || isMissing) return;
    const whole = outputFile(audio, language);
    const isCut = faults.includes('cut_off') && index === recordings.length - 1;
    const bytes = isCut ? whole.subarray(0, whole.length / 2) : whole;
    state.files.put(`${CONTAINER}/${id}/outputs/${index}.json`, bytes, sinceMs);
  });
  const failed = recordings.length - readable.length;
  return { outputFile: id, errorFile: null, completed: readable.length, failed, usage: null };
}

/** A result file. What it calls words is a phrase. */
function outputFile(audio: Buffer, language: string): Buffer {
  const { text, words } = recognize(audio);
  const timestamps = {
    words: [text],
    start_time_seconds: [(words[0]?.startMs ?? 0) / 1_000],
    end_time_seconds: [(words.at(-1)?.endMs ?? 0) / 1_000],
  };
  const language_code = language === 'unknown' ? 'en-IN' : language;
  const file = { request_id: randomUUID(), transcript: text, timestamps, language_code };
  return Buffer.from(JSON.stringify(file));
}
