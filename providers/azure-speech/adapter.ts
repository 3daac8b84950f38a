import { accountOf } from '../account';
import { createWithRecordings } from '../audio/listed-recordings';
import { localeOf } from '../audio/locales';
import { inRecordingFolder, recordingFolder } from '../audio/recording-folder';
import { encodeRecording, readStaged } from '../audio/staged-recording';
import { uploadRecordings } from '../audio/upload-recordings';
import { openAzureContainer } from '../azure-container/azure-container';
import { openCredential } from '../credential';
import { jobIdOfName, jobName } from '../job-name';
import type {
  CallOptions,
  CreateResult,
  FoundJob,
  IdempotentResult,
  JobState,
  JobStatus,
  MarkedJob,
  MarkerToList,
  NewJob,
  Provider,
  ProviderCapabilities,
  SendOptions,
} from '../provider';
import type { AzureSpeechKind, ProviderConnection } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { submitRequest } from './job-request';
import { speechStatus } from './job-state';
import { readReport, readResults } from './result-files';
import { SpeechApi } from './speech-api';

/**
 * Limits of batch transcription:
 * https://learn.microsoft.com/azure/ai-services/speech-service/speech-services-quotas-and-limits.
 */
const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'filter',
  storesMarker: true,
  isSingleModel: false,
  canCancel: false,
  maxLines: 1_000,
  maxBytes: null,
  maxEmbeddingInputs: null,
  minPollMs: 60_000,
  settleMs: 30_000,
  resultsLagMs: 5 * 60_000,
};

/** What the functions of the adapter need. */
interface Opened {
  readonly api: SpeechApi;
  readonly folder: RemoteFolder;
  readonly locales: readonly string[];
}

/**
 * The adapter for batch transcription of Azure Speech (docs/design/providers.md#azure-speech).
 * @throws config_invalid if the key or the token cannot be read
 */
export function createAzureSpeechProvider(
  settings: ProviderConnection & AzureSpeechKind,
): Provider {
  const credential = settings.apiKey === null ? null : openCredential(settings.apiKey);
  const folder = openAzureContainer(settings.storage, settings);
  const mask = (text: string): string => folder.mask(credential?.mask(text) ?? text);
  const api = new SpeechApi(settings, credential, mask);
  const opened = { api, folder, locales: settings.locales };
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: (line) => encodeRecording(line, localeOf),
    completionWindow: () => null,
    upload: async ({ jobId }, input, call) => {
      const staged = await readStaged(input);
      const place = (name: string, language: string | null): string =>
        recordingFolder(jobId, language) + name;
      const uploaded = await uploadRecordings(staged, { folder, place }, call);
      if (uploaded.outcome !== 'ok') return uploaded;
      return { outcome: 'ok', value: recordingFolder(jobId, staged[0]?.language ?? null) };
    },
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: async (job, call) => foundJob(await api.jobsNamed(jobName(job), call)),
    create: (job, call) => createJob(opened, job, call),
    status: (id, call) => statusOf(api, id, call),
    results: ({ externalId }, take, call) => readResults(opened, { externalId, take }, call),
    cancel: async () => ({ outcome: 'ok', value: 'unsupported' }),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: async ({ externalId, remoteInputs }, call) => {
      const removed = externalId === null ? null : await api.remove(externalId, call);
      const isLeft = removed !== null && removed.outcome !== 'ok' && removed.outcome !== 'gone';
      return isLeft ? removed : removeRecordings(folder, remoteInputs, call);
    },
    close: async () => {
      await Promise.all([api.close(), folder.close()]);
    },
  };
}

function foundJob(
  named: IdempotentResult<
    readonly { readonly externalId: string; readonly createdAtMs: number | null }[]
  >,
): IdempotentResult<FoundJob> {
  if (named.outcome !== 'ok') return named;
  const [job] = named.value;
  if (job === undefined) return { outcome: 'ok', value: { kind: 'none' } };
  const { externalId, createdAtMs } = job;
  return { outcome: 'ok', value: { kind: 'job', job: { externalId, createdAtMs } } };
}

async function listMarked(
  api: SpeechApi,
  { storeId, sinceMs }: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const jobs = await api.jobsSince(sinceMs, call);
  if (jobs.outcome !== 'ok') return jobs;
  const marked = jobs.value.flatMap(({ externalId, displayName, state }): MarkedJob[] => {
    const jobId = hasEnded(state) ? null : jobIdOfName(displayName, storeId);
    return jobId === null ? [] : [{ externalId, jobId }];
  });
  return { outcome: 'ok', value: marked };
}

async function createJob(
  { api, folder, locales }: Opened,
  job: NewJob,
  call: SendOptions,
): Promise<CreateResult> {
  const { remoteInput: prefix, lines, jobId } = job;
  if (prefix === null) throw new TypeError(`job ${jobId} has no recordings`);
  return createWithRecordings({ folder, prefix, lines }, call, (urls, left) =>
    api.submit(submitRequest(job, { folder: prefix, urls }, locales), left),
  );
}

/** One call, and two more for an ended job: its report counts, and names the recordings that failed. */
async function statusOf(
  api: SpeechApi,
  id: string,
  call: CallOptions,
): Promise<IdempotentResult<JobStatus>> {
  const look = await api.job(id, call);
  if (look.outcome !== 'ok') return look;
  const report = hasEnded(look.value.state) ? await readReport(api, id, call) : null;
  if (report === null || report.outcome === 'ok') {
    return { outcome: 'ok', value: speechStatus(look.value, report?.value ?? null, api.mask) };
  }
  return report;
}

function hasEnded(state: JobState): boolean {
  return state === 'completed' || state === 'failed';
}

async function removeRecordings(
  folder: RemoteFolder,
  remoteInputs: readonly string[],
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  // Any other name would be the beginning of names that are not ours.
  for (const input of remoteInputs.filter((name) => inRecordingFolder(name) !== null)) {
    const names = await folder.list(input, call);
    if (names.outcome !== 'ok') return names;
    for (const name of names.value) {
      const deleted = await folder.delete(name, call);
      if (deleted.outcome !== 'ok') return deleted;
    }
  }
  return { outcome: 'ok', value: undefined };
}
