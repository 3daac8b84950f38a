import { accountOf } from '../account';
import { openAwsCredentials } from '../aws/aws-account';
import { openAwsTransport } from '../aws/transport';
import { cancelOrLook } from '../cancel-or-look';
import { hasEnded } from '../job-end';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobRemains,
  JobStatus,
  JobToFind,
  LineResult,
  MarkedJob,
  MarkerToList,
  Provider,
  ProviderCapabilities,
  ResultOptions,
  ResultTotals,
} from '../provider';
import type { BedrockKind, ProviderConnection } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { readResultFiles } from '../result-file';
import { openS3Folder } from '../s3-folder/s3-folder';
import { BedrockApi } from './bedrock-api';
import { bedrockJobName, folderOf, jobIdOfName, jobNamePrefix, placeOfInput } from './job-request';
import { readBedrockJob } from './job-state';
import { readOutput } from './output-folder';
import { encodeRecord } from './request';
import { readResultLine } from './result-line';

const GB = 1_000_000_000;
const HOUR_MS = 3_600_000;
/** Bounds of `timeoutDurationInHours`. */
const [MIN_HOURS, MAX_HOURS] = [24, 168];

/**
 * Limits of most models: https://docs.aws.amazon.com/general/latest/gr/bedrock.html. Amazon states no limit for the time
 * in which it recognises a token, so the list is asked too, as if there were none.
 */
const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'filter',
  storesMarker: true,
  isSingleModel: true,
  canCancel: true,
  maxLines: 50_000,
  maxBytes: GB,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  settleMs: 30_000,
  resultsLagMs: 5 * 60_000,
};

/**
 * The adapter for batch inference of Amazon Bedrock (docs/design/providers.md#amazon-bedrock).
 * @throws config_invalid if the credential cannot be read
 */
export function createBedrockProvider(settings: ProviderConnection & BedrockKind): Provider {
  const { storage, region, maxResultLineBytes } = settings;
  const transport = openAwsTransport(settings);
  const access = { credentials: openAwsCredentials(settings.apiKey), transport };
  const folder = openS3Folder({ ...storage, region }, access);
  const api = new BedrockApi(settings, access, folder);
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: encodeRecord,
    completionWindow: (timeLeftMs) =>
      String(Math.min(Math.max(Math.floor(timeLeftMs / HOUR_MS), MIN_HOURS), MAX_HOURS)),
    upload: async ({ jobId }, input, call) => {
      const name = placeOfInput(jobId);
      const sent = await folder.put(name, input, call);
      return sent.outcome === 'ok' ? { outcome: 'ok', value: name } : sent;
    },
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => api.create(job, call),
    status: (id, call) => lookAt({ api, folder }, id, call),
    results: (job, take, call) => readResults({ folder, maxResultLineBytes }, job, take, call),
    cancel: (id, call) =>
      cancelOrLook(
        async () => {
          const stopped = await api.stop(id, call);
          return stopped.outcome === 'ok' ? { outcome: 'ok', value: STOPPING } : stopped;
        },
        async () => {
          const look = await api.job(id, call);
          return look.outcome === 'ok' ? { outcome: 'ok', value: look.value.status } : look;
        },
      ),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: (remains, call) => cleanUp(folder, remains, call),
    close: () => transport.close(),
  };
}

const STOPPING = { state: 'cancelling' } as const;

async function findJob(
  api: BedrockApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  const name = bedrockJobName(job);
  const listed = await api.list({ nameContains: name, afterMs: job.listFromMs }, call);
  if (listed.outcome !== 'ok') return listed;
  const ours = listed.value.find(({ jobName }) => jobName === name);
  if (ours === undefined) return { outcome: 'ok', value: { kind: 'none' } };
  const createdAtMs = ours.submitTime?.getTime() ?? null;
  return {
    outcome: 'ok',
    value: { kind: 'job', job: { externalId: ours.jobArn, createdAtMs } },
  };
}

async function listMarked(
  api: BedrockApi,
  { storeId, sinceMs }: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const prefix = jobNamePrefix(storeId);
  const listed = await api.list({ nameContains: prefix, afterMs: sinceMs }, call);
  if (listed.outcome !== 'ok') return listed;
  const marked = listed.value.flatMap((one): MarkedJob[] => {
    const jobId = one.jobName.startsWith(prefix) ? jobIdOfName(one.jobName) : null;
    const state = readBedrockJob(one, (text) => text)?.status.state ?? 'running';
    return jobId === null || hasEnded(state) ? [] : [{ externalId: one.jobArn, jobId }];
  });
  return { outcome: 'ok', value: marked };
}

/** One call while a job runs; up to three when it has ended, because its results and tokens are in the bucket. */
async function lookAt(
  { api, folder }: { readonly api: BedrockApi; readonly folder: RemoteFolder },
  id: string,
  call: CallOptions,
): Promise<IdempotentResult<JobStatus>> {
  const look = await api.job(id, call);
  if (look.outcome !== 'ok') return look;
  const { status, hasResults, outputUri } = look.value;
  const open = { ...status, resultFiles: [], hasAllResults: false, usage: null };
  if (!hasEnded(status.state)) return { outcome: 'ok', value: open };
  const place = outputUri === null ? null : folder.nameOf(outputUri);
  if (place === null) return { outcome: 'ok', value: { ...open, hasAllResults: !hasResults } };
  const output = await readOutput(folder, place, call);
  if (output.outcome !== 'ok') return output;
  const { files: resultFiles, usage } = output.value;
  const hasAllResults = !hasResults || resultFiles.length > 0;
  return { outcome: 'ok', value: { ...status, resultFiles, hasAllResults, usage } };
}

async function readResults(
  {
    folder,
    maxResultLineBytes,
  }: { readonly folder: RemoteFolder; readonly maxResultLineBytes: number },
  { resultFiles }: JobStatus,
  take: (result: LineResult) => void | Promise<void>,
  call: ResultOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const { model, createdSec } = call;
  const read = (line: Buffer) => readResultLine(line, { model, createdSec });
  const options = { maxLineBytes: maxResultLineBytes, read, take };
  return readResultFiles(resultFiles, options, (file, push) => folder.read(file, push, call));
}

/** Deletes the folder of the job. Bedrock has no call that deletes a job, and keeps no lines of it. */
async function cleanUp(
  folder: RemoteFolder,
  { remoteInputs, resultFiles }: JobRemains,
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  const folders = new Set([...remoteInputs, ...resultFiles].map(folderOf));
  for (const prefix of folders) {
    if (prefix === null) continue;
    const listed = await folder.list(prefix, call);
    if (listed.outcome !== 'ok') return listed;
    for (const name of listed.value) {
      const deleted = await folder.delete(name, call);
      if (deleted.outcome !== 'ok') return deleted;
    }
  }
  return { outcome: 'ok', value: undefined };
}
