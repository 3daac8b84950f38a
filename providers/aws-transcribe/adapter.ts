import { accountOf } from '../account';
import { encodeRecording, readStaged } from '../audio/staged-recording';
import { localeOf } from '../audio/locales';
import { uploadRecordings } from '../audio/upload-recordings';
import { recordingFolder } from '../audio/recording-folder';
import { readRecordingName } from '../audio/recording-name';
import { transcriptAnswer } from '../audio/transcript-answer';
import { openAwsCredentials } from '../aws/aws-account';
import { openAwsTransport } from '../aws/transport';
import { jobIdOfName, jobNamePrefix } from '../job-name';
import type {
  CallOptions,
  CreateResult,
  IdempotentResult,
  JobStatus,
  LineResult,
  MarkedJob,
  MarkerToList,
  NewJob,
  Provider,
  ProviderCapabilities,
  ResultTotals,
  SendOptions,
} from '../provider';
import type { AwsTranscribeKind, ProviderConnection } from '../provider-settings';
import { wholeFile } from '../read-file';
import type { RemoteFolder } from '../remote-folder';
import { openS3Folder } from '../s3-folder/s3-folder';
import { transcribeJobName } from './job-request';
import { TranscribeApi } from './transcribe-api';
import { readTranscript } from './transcript';

/** Limits of Amazon Transcribe: https://docs.aws.amazon.com/transcribe/latest/dg/limits-guidelines.html. */
const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'name',
  storesMarker: true,
  isSingleModel: false,
  canCancel: false,
  maxLines: 1,
  maxBytes: null,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  // A late create cannot make a second job: its name is taken.
  settleMs: 0,
  resultsLagMs: 5 * 60_000,
};

/**
 * The adapter for Amazon Transcribe (docs/design/providers.md#amazon-transcribe). A job has one recording.
 * @throws config_invalid if the credential cannot be read
 */
export function createTranscribeProvider(
  settings: ProviderConnection & AwsTranscribeKind,
): Provider {
  const { storage, region, maxResultLineBytes: maxBytes } = settings;
  const transport = openAwsTransport(settings);
  const access = { credentials: openAwsCredentials(settings.apiKey), transport };
  const folder = openS3Folder({ ...storage, region }, access);
  const api = new TranscribeApi(settings, access, folder);
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: (line) => encodeRecording(line, localeOf),
    completionWindow: () => null,
    upload: async ({ jobId }, input, call) => {
      const place = (name: string, language: string | null): string =>
        recordingFolder(jobId, language) + name;
      const uploaded = await uploadRecordings(await readStaged(input), { folder, place }, call);
      if (uploaded.outcome !== 'ok') return uploaded;
      return { outcome: 'ok', value: uploaded.value[0] ?? '' };
    },
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: async (job, call) => {
      const name = transcribeJobName(job);
      const look = await api.job(name, call);
      if (look.outcome === 'gone') return { outcome: 'ok', value: { kind: 'none' } };
      if (look.outcome !== 'ok') return look;
      const { createdAtMs } = look.value;
      return { outcome: 'ok', value: { kind: 'job', job: { externalId: name, createdAtMs } } };
    },
    create: (job, call) => createJob(api, job, call),
    status: async (id, call) => {
      const look = await api.job(id, call);
      return look.outcome === 'ok' ? { outcome: 'ok', value: look.value.status } : look;
    },
    results: (job, take, call) => readResults({ folder, maxBytes }, job, take, call),
    cancel: async () => ({ outcome: 'ok', value: 'unsupported' }),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: async ({ externalId, remoteInputs, resultFiles }, call) => {
      const removed = externalId === null ? null : await api.remove(externalId, call);
      if (removed !== null && removed.outcome !== 'ok') return removed;
      for (const name of [...remoteInputs, ...resultFiles]) {
        const deleted = await folder.delete(name, call);
        if (deleted.outcome !== 'ok') return deleted;
      }
      return { outcome: 'ok', value: undefined };
    },
    close: () => transport.close(),
  };
}

/** A conflict says that an earlier create was accepted: the name has our ids. So that job is adopted. */
async function createJob(
  api: TranscribeApi,
  job: NewJob,
  call: SendOptions,
): Promise<CreateResult> {
  const created = await api.start(job, call);
  if (created.outcome !== 'ambiguous' || created.failure.code !== 'ConflictException') {
    return created;
  }
  const externalId = transcribeJobName(job);
  const look = await api.job(externalId, call);
  if (look.outcome !== 'ok') return created;
  return { outcome: 'accepted', value: { externalId, createdAtMs: look.value.createdAtMs } };
}

async function listMarked(
  api: TranscribeApi,
  { storeId, sinceMs }: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const open = await api.openJobs({ text: jobNamePrefix(storeId), sinceMs }, call);
  if (open.outcome !== 'ok') return open;
  const marked = open.value.flatMap((externalId): MarkedJob[] => {
    const jobId = jobIdOfName(externalId, storeId);
    return jobId === null ? [] : [{ externalId, jobId }];
  });
  return { outcome: 'ok', value: marked };
}

async function readResults(
  { folder, maxBytes }: { readonly folder: RemoteFolder; readonly maxBytes: number },
  { resultFiles }: JobStatus,
  take: (result: LineResult) => void | Promise<void>,
  call: CallOptions,
): Promise<IdempotentResult<ResultTotals>> {
  let [results, malformed] = [0, 0];
  for (const file of resultFiles) {
    const whole = wholeFile(maxBytes);
    const read = await folder.read(file, whole.take, call);
    if (read.outcome !== 'ok') return read;
    const recording = readRecordingName(file.split('/').at(-1) ?? '');
    const transcription = readTranscript(whole.json());
    if (recording === null || transcription === null) malformed++;
    else {
      results++;
      await take(transcriptAnswer(recording, transcription));
    }
  }
  return { outcome: 'ok', value: { results, malformed } };
}
