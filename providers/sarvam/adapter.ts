import { accountOf } from '../account';
import { readRecordingName } from '../audio/recording-name';
import { encodeRecording, readStaged, type StagedRecording } from '../audio/staged-recording';
import { transcriptAnswer, unreadableRecording } from '../audio/transcript-answer';
import { openRecordings } from '../audio/upload-recordings';
import { openCredential } from '../credential';
import type {
  CallOptions,
  CreateResult,
  FoundJob,
  IdempotentResult,
  JobToCreate,
  LineResult,
  NewJob,
  Provider,
  ProviderCapabilities,
  ResultTotals,
  SendOptions,
  UploadOptions,
} from '../provider';
import type { ProviderConnection, SarvamKind } from '../provider-settings';
import type { SarvamFile } from './job-state';
import { sarvamLanguage, UNKNOWN_LANGUAGE } from './languages';
import { SarvamApi, type FileAddresses } from './sarvam-api';
import { readSarvamTranscript } from './transcript';

/** Limits of a job: https://docs.sarvam.ai/api/speech-to-text/apis/batch. */
const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'inert',
  storesMarker: false,
  isSingleModel: true,
  canCancel: false,
  maxLines: 20,
  maxBytes: null,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  // A late start cannot make a second job: it starts the same one.
  settleMs: 0,
  resultsLagMs: 5 * 60_000,
};

/**
 * The adapter for Sarvam AI (docs/design/providers.md#sarvam). The upload makes a job, and the create starts it.
 * @throws config_invalid if the key cannot be read
 */
export function createSarvamProvider(settings: ProviderConnection & SarvamKind): Provider {
  const credential = settings.apiKey === null ? null : openCredential(settings.apiKey);
  const api = new SarvamApi(settings, credential);
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: (line) => encodeRecording(line, sarvamLanguage),
    completionWindow: () => null,
    upload: async (job, input, call) => upload(api, { job, staged: await readStaged(input) }, call),
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: ({ remoteInput }, call) => findStarted(api, remoteInput, call),
    create: (job, call) => startJob(api, job, call),
    status: async (id, call) => {
      const look = await api.job(id, call);
      return look.outcome === 'ok' ? { outcome: 'ok', value: look.value.status } : look;
    },
    results: ({ externalId }, take, call) => readResults(api, { externalId, take }, call),
    cancel: async () => ({ outcome: 'ok', value: 'unsupported' }),
    // There is no call to delete anything.
    cleanup: async () => ({ outcome: 'ok', value: undefined }),
    close: () => api.close(),
  };
}

async function upload(
  api: SarvamApi,
  { job, staged }: { readonly job: JobToCreate; readonly staged: readonly StagedRecording[] },
  call: UploadOptions,
): Promise<IdempotentResult<string>> {
  const recordings = await openRecordings(staged, call);
  if (recordings.outcome !== 'ok') return recordings;
  const initiated = await api.initiate(
    {
      model: job.model,
      language_code: staged[0]?.language ?? UNKNOWN_LANGUAGE,
      with_timestamps: true,
    },
    call,
  );
  if (initiated.outcome !== 'ok') return initiated;
  const { id, container } = initiated.value;
  const names = recordings.value.map(({ name }) => name);
  const addresses = await api.uploadAddresses(id, names, call);
  if (addresses.outcome !== 'ok') return addresses;
  for (const { name, input } of recordings.value) {
    const url = addresses.value.get(name) ?? '';
    const written = await api.write(url, { input, container }, call);
    if (written.outcome !== 'ok') return written;
  }
  return { outcome: 'ok', value: id };
}

/**
 * A job of ours is there as soon as it was started. An id that Sarvam refuses counts as one that it does not know:
 * a start of it would be refused too.
 */
async function findStarted(
  api: SarvamApi,
  id: string | null,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  if (id === null) return { outcome: 'ok', value: { kind: 'none' } };
  const look = await api.job(id, call);
  const isUnknown = look.outcome === 'gone' || look.outcome === 'refused';
  if (isUnknown) return { outcome: 'ok', value: { kind: 'none' } };
  if (look.outcome !== 'ok') return look;
  const { externalId, createdAtMs, isStarted } = look.value;
  const job = { externalId, createdAtMs };
  return { outcome: 'ok', value: isStarted ? { kind: 'job', job } : { kind: 'none' } };
}

/** A start that is refused may be a repetition of one that was accepted, so the job decides. */
async function startJob(api: SarvamApi, job: NewJob, call: SendOptions): Promise<CreateResult> {
  const { remoteInput, jobId } = job;
  if (remoteInput === null) throw new TypeError(`job ${jobId} was not uploaded`);
  const started = await api.start(remoteInput, call);
  if (started.outcome !== 'refused') return started;
  const found = await findStarted(api, remoteInput, call);
  if (found.outcome !== 'ok') return { outcome: 'ambiguous', failure: found.failure };
  return found.value.kind === 'job' ? { outcome: 'accepted', value: found.value.job } : started;
}

async function readResults(
  api: SarvamApi,
  {
    externalId,
    take,
  }: {
    readonly externalId: string;
    readonly take: (result: LineResult) => void | Promise<void>;
  },
  call: CallOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const look = await api.job(externalId, call);
  if (look.outcome !== 'ok') return look;
  const { files } = look.value;
  const outputs = files.flatMap(({ output }) => output ?? []);
  const addresses =
    outputs.length === 0
      ? { outcome: 'ok' as const, value: new Map<string, string>() }
      : await api.downloadAddresses(externalId, outputs, call);
  if (addresses.outcome !== 'ok') return addresses;
  let [results, malformed] = [0, 0];
  for (const file of files.filter(({ output, isUnreadable }) => output !== null || isUnreadable)) {
    const result = await resultOf(api, { file, addresses: addresses.value }, call);
    if (result.outcome !== 'ok') return result;
    if (result.value === null) malformed++;
    else {
      results++;
      await take(result.value);
    }
  }
  return { outcome: 'ok', value: { results, malformed } };
}

/** The result of a recording; null if it cannot be read. */
async function resultOf(
  api: SarvamApi,
  { file, addresses }: { readonly file: SarvamFile; readonly addresses: FileAddresses },
  call: CallOptions,
): Promise<IdempotentResult<LineResult | null>> {
  const recording = readRecordingName(file.input);
  if (recording === null) return { outcome: 'ok', value: null };
  if (file.output === null) return { outcome: 'ok', value: unreadableRecording(recording) };
  const content = await api.read(addresses.get(file.output) ?? '', call);
  if (content.outcome !== 'ok') return content;
  const transcription = readSarvamTranscript(content.value.json);
  const answer = transcription === null ? null : transcriptAnswer(recording, transcription);
  return { outcome: 'ok', value: answer };
}
