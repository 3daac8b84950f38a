import { accountOf } from '../account';
import { cancelOrLook } from '../cancel-or-look';
import { openCredential } from '../credential';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  InputState,
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
import { openProviderHttp } from '../provider-http';
import type { GeminiKind, ProviderConnection } from '../provider-settings';
import { ResultReader } from '../result-file';
import { GeminiApi } from './api';
import { BatchSearch, MarkedBatches, type GeminiPage } from './batch-list';
import { encodeGeminiLine, readGeminiLine } from './line-format';

const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'list',
  storesMarker: true,
  isSingleModel: true,
  canCancel: true,
  maxLines: null,
  // The Files API takes 2 GB (https://ai.google.dev/gemini-api/docs/files).
  maxBytes: 2_000_000_000,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  settleMs: 30_000,
  resultsLagMs: 5 * 60_000,
};

/**
 * The adapter for batches of the Gemini API (docs/design/providers.md#gemini-api).
 * @throws config_invalid if the credential cannot be read
 */
export function createGeminiProvider(settings: ProviderConnection & GeminiKind): Provider {
  const { apiKey } = settings;
  const credential = apiKey === null ? null : openCredential(apiKey);
  const authorize = (): readonly string[] =>
    credential === null ? [] : ['x-goog-api-key', credential.current()];
  const http = openProviderHttp({ ...settings, authorize });
  const api = new GeminiApi(http, (text) => credential?.mask(text) ?? text);
  const look = async (id: string, call: CallOptions): Promise<IdempotentResult<JobStatus>> => {
    const result = await api.batch(id, call);
    return result.outcome === 'ok' ? { outcome: 'ok', value: result.value.status } : result;
  };
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: encodeGeminiLine,
    completionWindow: () => null,
    upload: ({ jobId }, input, call) => api.upload(jobId, input, call),
    inputState: (file, call) => inputState(api, file, call),
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => api.create(job, call),
    status: look,
    results: (job, take, call) => {
      const maxLineBytes = settings.maxResultLineBytes;
      return readResults(api, { files: job.resultFiles, take, maxLineBytes }, call);
    },
    cancel: (id, call) => cancelJob(api, id, { call, look: () => look(id, call) }),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: (remains, call) => cleanUp(api, remains, call),
    close: () => http.close(),
  };
}

/** A file that is gone or refused is left to the create, whose refusal is final. */
async function inputState(
  api: GeminiApi,
  file: string,
  call: CallOptions,
): Promise<IdempotentResult<InputState>> {
  const look = await api.fileState(file, call);
  const isFinal = look.outcome === 'gone' || look.outcome === 'refused';
  return isFinal ? { outcome: 'ok', value: 'ready' } : look;
}

async function findJob(
  api: GeminiApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  const search = new BatchSearch(job);
  let found: ReturnType<BatchSearch['read']> = 'more';
  const listed = await eachPage(api, call, (page) => {
    found = search.read(page);
    return found === 'more';
  });
  if (listed.outcome !== 'ok') return listed;
  return { outcome: 'ok', value: foundJob(found) };
}

function foundJob(found: ReturnType<BatchSearch['read']>): FoundJob {
  if (found === 'none' || found === 'more') return { kind: 'none' };
  const { status, createdAtMs } = found;
  return { kind: 'job', job: { externalId: status.externalId, createdAtMs } };
}

async function listMarked(
  api: GeminiApi,
  marker: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const marked = new MarkedBatches(marker);
  const listed = await eachPage(api, call, (page) => marked.read(page));
  return listed.outcome === 'ok' ? { outcome: 'ok', value: marked.found } : listed;
}

/** Reads the pages of the list, as long as `take` returns true. */
async function eachPage(
  api: GeminiApi,
  call: CallOptions,
  take: (page: GeminiPage) => boolean,
): Promise<IdempotentResult<true>> {
  for (let token: string | null = null; ;) {
    const page: IdempotentResult<GeminiPage> = await api.page(token, call);
    if (page.outcome !== 'ok') return page;
    if (!take(page.value)) return { outcome: 'ok', value: true };
    token = page.value.next;
  }
}

/** The answer to a cancel does not show the batch, so an accepted cancel is a request. */
function cancelJob(
  api: GeminiApi,
  id: string,
  options: {
    readonly call: CallOptions;
    readonly look: () => Promise<IdempotentResult<JobStatus>>;
  },
): ReturnType<Provider['cancel']> {
  return cancelOrLook(async () => {
    const result = await api.cancel(id, options.call);
    return result.outcome === 'ok' ? { outcome: 'ok', value: { state: 'cancelling' } } : result;
  }, options.look);
}

async function readResults(
  api: GeminiApi,
  read: {
    readonly files: readonly string[];
    readonly take: (result: LineResult) => void | Promise<void>;
    readonly maxLineBytes: number;
  },
  call: ResultOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const { files, take, maxLineBytes } = read;
  const reader = new ResultReader({
    maxLineBytes,
    read: (line) => readGeminiLine(line, call, api.mask),
    take,
  });
  for (const file of files) {
    const result = await api.download(file, (piece) => reader.push(piece), call);
    if (result.outcome !== 'ok') return result;
    await reader.endFile();
  }
  return { outcome: 'ok', value: reader.totals };
}

/**
 * Deletes the files, then the batch, which is the last to tell what there was. The API refuses to delete some files
 * of results; they go with their batch, or expire.
 */
async function cleanUp(
  api: GeminiApi,
  { externalId, remoteInputs, resultFiles }: JobRemains,
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  for (const file of [...remoteInputs, ...resultFiles]) {
    const result = await api.deleteFile(file, call);
    const isKept = result.outcome === 'refused' && resultFiles.includes(file);
    if (result.outcome !== 'ok' && result.outcome !== 'gone' && !isKept) return result;
  }
  const result = externalId === null ? null : await api.deleteBatch(externalId, call);
  if (result === null || result.outcome === 'ok' || result.outcome === 'gone') {
    return { outcome: 'ok', value: undefined };
  }
  return result;
}
