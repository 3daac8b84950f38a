import { accountOf } from '../account';
import { createWithRecordings } from '../audio/listed-recordings';
import { localeOf } from '../audio/locales';
import { recordingFolder } from '../audio/recording-folder';
import { readRecordingName } from '../audio/recording-name';
import { encodeRecording, readStaged } from '../audio/staged-recording';
import { transcriptAnswer, unreadableRecording } from '../audio/transcript-answer';
import { uploadRecordings } from '../audio/upload-recordings';
import { cancelOrLook } from '../cancel-or-look';
import { removeJobFiles } from '../gcs-folder/job-files';
import { openGoogleCloud } from '../google-cloud';
import type {
  CallOptions,
  CreateResult,
  FoundJob,
  IdempotentResult,
  JobInput,
  JobToFind,
  LineResult,
  MarkedJob,
  MarkerToList,
  NewJob,
  Provider,
  ProviderCapabilities,
  ResultTotals,
  SendOptions,
  UploadOptions,
} from '../provider';
import type { GoogleSpeechKind, ProviderConnection } from '../provider-settings';
import { wholeFile } from '../read-file';
import type { RemoteFolder } from '../remote-folder';
import { eachPage } from '../token-pages';
import { markedJobId, outputPrefix, recognizeRequest } from './job-request';
import { speechStatus, type RecognizedFile, type SpeechOperation } from './operation';
import { SpeechApi } from './speech-api';
import { readSpeechTranscript } from './transcript';

/** Limits of batch recognition: https://cloud.google.com/speech-to-text/v2/quotas. */
const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'list',
  storesMarker: true,
  isSingleModel: true,
  canCancel: true,
  maxLines: 15,
  maxBytes: null,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  settleMs: 30_000,
  resultsLagMs: 300_000,
};

/** What the functions of the adapter need. */
interface Opened {
  readonly api: SpeechApi;
  readonly folder: RemoteFolder;
  readonly locales: readonly string[];
  readonly maxBytes: number;
}

/**
 * The adapter for batch recognition of Cloud Speech-to-Text (docs/design/providers.md#google-speech).
 * @throws config_invalid if the credentials cannot be read
 */
export function createGoogleSpeechProvider(
  settings: ProviderConnection & GoogleSpeechKind,
): Provider {
  const { locales, maxResultLineBytes: maxBytes } = settings;
  const { http, folder, mask, close } = openGoogleCloud(settings);
  const api = new SpeechApi(http, settings, mask);
  const opened = { api, folder, locales, maxBytes };
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: (line) => encodeRecording(line, localeOf),
    completionWindow: () => null,
    upload: ({ jobId }, input, call) => upload(folder, { jobId, input }, call),
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: (job, call) => findJob(opened, job, call),
    create: (job, call) => createJob(opened, job, call),
    status: async (id, call) => {
      const look = await api.operation(id, call);
      return look.outcome === 'ok'
        ? { outcome: 'ok', value: speechStatus(look.value, mask) }
        : look;
    },
    results: ({ externalId }, take, call) => readResults(opened, { externalId, take }, call),
    cancel: (id, call) =>
      cancelOrLook(
        () => cancelJob(api, id, call),
        () => lookAt(api, id, call),
      ),
    listMarked: (marker, call) => listMarked(opened, marker, call),
    cleanup: (remains, call) => removeJobFiles(folder, remains, call),
    close,
  };
}

async function upload(
  folder: RemoteFolder,
  { jobId, input }: { readonly jobId: string; readonly input: JobInput },
  call: UploadOptions,
): Promise<IdempotentResult<string>> {
  const staged = await readStaged(input);
  const prefix = recordingFolder(jobId, staged[0]?.language ?? null);
  const place = (name: string): string => prefix + name;
  const uploaded = await uploadRecordings(staged, { folder, place }, call);
  return uploaded.outcome === 'ok' ? { outcome: 'ok', value: folder.uri(prefix) } : uploaded;
}

/** The list has no order and no filter for our fields, so it is read to its end. */
async function findJob(
  { api, folder }: Opened,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  const wanted = folder.uri(outputPrefix(job));
  let found: SpeechOperation | undefined;
  const listed = await eachPage(
    (token) => api.page(token, call),
    (operations) => {
      found = operations.find(({ output }) => output === wanted);
      return found === undefined;
    },
  );
  if (listed.outcome !== 'ok') return listed;
  const value: FoundJob =
    found === undefined ? { kind: 'none' } : { kind: 'job', job: found.created };
  return { outcome: 'ok', value };
}

async function listMarked(
  { api, folder }: Opened,
  { storeId, sinceMs }: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const marked: MarkedJob[] = [];
  const listed = await eachPage(
    (token) => api.page(token, call),
    (operations) => {
      for (const { created, output, isDone } of operations) {
        const jobId = markedJobId(folder.nameOf(output ?? ''), storeId);
        const isOld = created.createdAtMs !== null && created.createdAtMs < sinceMs;
        if (jobId === null || isDone || isOld) continue;
        marked.push({ externalId: created.externalId, jobId });
      }
      return true;
    },
  );
  return listed.outcome === 'ok' ? { outcome: 'ok', value: marked } : listed;
}

async function createJob(
  { api, folder, locales }: Opened,
  job: NewJob,
  call: SendOptions,
): Promise<CreateResult> {
  const prefix = folder.nameOf(job.remoteInput ?? '');
  if (prefix === null) throw new TypeError(`job ${job.jobId} has no recordings`);
  const output = folder.uri(outputPrefix(job));
  return createWithRecordings({ folder, prefix, lines: job.lines }, call, (uris, left) =>
    api.create(recognizeRequest(job, { folder: prefix, uris, output }, locales), left),
  );
}

/** Reads the transcripts of a job, one call each, and the recordings that the service blames. */
async function readResults(
  opened: Opened,
  read: {
    readonly externalId: string;
    readonly take: (result: LineResult) => void | Promise<void>;
  },
  call: CallOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const look = await opened.api.operation(read.externalId, call);
  if (look.outcome !== 'ok') return look;
  let [results, malformed] = [0, 0];
  for (const file of look.value.files.filter(isFinal)) {
    const result = await resultOf(opened, file, call);
    if (result.outcome !== 'ok') return result;
    if (result.value === null) malformed++;
    else {
      results++;
      await read.take(result.value);
    }
  }
  return { outcome: 'ok', value: { results, malformed } };
}

/** Whether the recording has a transcript, or is to blame for having none. */
function isFinal({ transcript, error }: RecognizedFile): boolean {
  return error === null ? transcript !== null : error.httpStatus === 400;
}

/** Null for a transcript that cannot be read, or that is of no recording of ours. */
async function resultOf(
  { folder, maxBytes }: Opened,
  { source, transcript, error }: RecognizedFile,
  call: CallOptions,
): Promise<IdempotentResult<LineResult | null>> {
  const recording = readRecordingName(folder.nameOf(source)?.split('/').at(-1) ?? '');
  const name = folder.nameOf(transcript ?? '');
  if (recording === null) return { outcome: 'ok', value: null };
  if (error !== null) return { outcome: 'ok', value: unreadableRecording(recording) };
  if (name === null) return { outcome: 'ok', value: null };
  const whole = wholeFile(maxBytes);
  const end = await folder.read(name, whole.take, call);
  if (end.outcome !== 'ok') return end;
  const transcription = readSpeechTranscript(whole.json());
  const value = transcription === null ? null : transcriptAnswer(recording, transcription);
  return { outcome: 'ok', value };
}

async function cancelJob(api: SpeechApi, id: string, call: CallOptions) {
  const result = await api.cancel(id, call);
  if (result.outcome !== 'ok') return result;
  return { outcome: 'ok' as const, value: { state: 'cancelling' as const } };
}

async function lookAt(api: SpeechApi, id: string, call: CallOptions) {
  const look = await api.operation(id, call);
  if (look.outcome !== 'ok') return look;
  return { outcome: 'ok' as const, value: speechStatus(look.value, api.mask) };
}
