import { accountOf } from '../account';
import { openCredential } from '../credential';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobRemains,
  JobStatus,
  JobToFind,
  LineResult,
  Provider,
  ProviderCapabilities,
  ResultOptions,
  ResultTotals,
} from '../provider';
import { openProviderHttp } from '../provider-http';
import type { AnthropicKind, ProviderConnection } from '../provider-settings';
import { ResultReader } from '../result-file';
import { cancelOrLook } from '../cancel-or-look';
import { BatchApi } from './batch-api';
import { searchPage } from './batch-page';
import { createBody } from './create-body';
import { encodeRequest } from './request';
import { readResultLine } from './result-line';

const MB = 1_000_000;

/** Of the Message Batches API: https://platform.claude.com/docs/en/build-with-claude/batch-processing. */
const CAPABILITIES: ProviderCapabilities = {
  input: 'inline',
  find: 'window',
  storesMarker: false,
  isSingleModel: false,
  canCancel: true,
  maxLines: 100_000,
  maxBytes: 256 * MB,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  settleMs: 120_000,
  resultsLagMs: 5 * 60_000,
};

/** How Anthropic is reached. */
export type AnthropicSettings = ProviderConnection & AnthropicKind;

/**
 * The adapter for Anthropic's Message Batches (docs/design/providers.md#anthropic).
 * @throws config_invalid if the credential cannot be read
 */
export function createAnthropicProvider(settings: AnthropicSettings): Provider {
  const { apiKey, apiVersion } = settings;
  const credential = apiKey === null ? null : openCredential(apiKey);
  const key = (): readonly string[] =>
    credential === null ? [] : ['x-api-key', credential.current()];
  const http = openProviderHttp({
    ...settings,
    authorize: () => ['anthropic-version', apiVersion, ...key()],
  });
  const api = new BatchApi(http, (text) => credential?.mask(text) ?? text);
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: (line) => encodeRequest(line, apiVersion),
    completionWindow: () => null,
    upload: () => Promise.reject(new RangeError('the input is the body of the create')),
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: (job, call) => findCandidates(api, job, call),
    create: (job, call) => {
      if (job.inline === null) throw new RangeError('the create has no input');
      return api.create(createBody(job.inline), call);
    },
    status: (id, call) => api.batch(id, call),
    results: (job, take, call) => readResults(api, { job, take, settings }, call),
    cancel: (id, call) =>
      cancelOrLook(
        () => api.cancel(id, call),
        () => api.batch(id, call),
      ),
    cleanup: (remains, call) => deleteBatch(api, remains, call),
    close: () => http.close(),
  };
}

/** All batches with as many requests as the job has lines, since the first attempt. None of them has our name. */
async function findCandidates(
  api: BatchApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  const externalIds: string[] = [];
  for (let after: string | null = null; ;) {
    const result = await api.page(after, call);
    if (result.outcome !== 'ok') return result;
    const { candidates, isLast } = searchPage(result.value, job);
    externalIds.push(...candidates);
    after = result.value.next;
    if (!isLast) continue;
    const isNone = externalIds.length === 0;
    return {
      outcome: 'ok',
      value: isNone ? { kind: 'none' } : { kind: 'candidates', externalIds },
    };
  }
}

async function readResults(
  api: BatchApi,
  read: {
    readonly job: JobStatus;
    readonly take: (result: LineResult) => void | Promise<void>;
    readonly settings: AnthropicSettings;
  },
  call: ResultOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const { job, take, settings } = read;
  const { model, createdSec } = call;
  const reader = new ResultReader({
    maxLineBytes: settings.maxResultLineBytes,
    read: (line) => readResultLine(line, { model, createdSec, mask: api.mask }),
    take,
  });
  for (const batch of job.resultFiles) {
    const result = await api.download(batch, (piece) => reader.push(piece), call);
    if (result.outcome !== 'ok') return result;
    await reader.endFile();
  }
  return { outcome: 'ok', value: reader.totals };
}

/** A batch is deleted with its input and its results. */
async function deleteBatch(
  api: BatchApi,
  { externalId }: JobRemains,
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  const result = externalId === null ? null : await api.delete(externalId, call);
  if (result === null || result.outcome === 'ok' || result.outcome === 'gone') {
    return { outcome: 'ok', value: undefined };
  }
  return result;
}
