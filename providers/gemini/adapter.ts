import { accountOf } from '../account';
import { deleted, inputStateOf, mapResult } from '../call-result';
import { cancelOrLook } from '../cancel-or-look';
import { openCredential } from '../credential';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobRemains,
  JobStatus,
  JobToFind,
  MarkedJob,
  MarkerToList,
  Provider,
  ProviderCapabilities,
} from '../provider';
import { openProviderHttp } from '../provider-http';
import type { GeminiKind, ProviderConnection } from '../provider-settings';
import { readResultFiles } from '../result-file';
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
  const look = async (id: string, call: CallOptions) =>
    mapResult(await api.batch(id, call), ({ status }) => status);
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: encodeGeminiLine,
    completionWindow: () => null,
    upload: ({ jobId }, input, call) => api.upload(jobId, input, call),
    inputState: async (file, call) => inputStateOf(await api.fileState(file, call)),
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => api.create(job, call),
    status: look,
    results: ({ resultFiles }, take, call) => {
      const read = (line: Buffer) => readGeminiLine(line, call, api.mask);
      const options = { maxLineBytes: settings.maxResultLineBytes, read, take };
      return readResultFiles(resultFiles, options, (file, push) => api.download(file, push, call));
    },
    cancel: (id, call) => cancelJob(api, id, { call, look: () => look(id, call) }),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: (remains, call) => cleanUp(api, remains, call),
    close: () => http.close(),
  };
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
  return deleted(externalId === null ? null : await api.deleteBatch(externalId, call));
}
