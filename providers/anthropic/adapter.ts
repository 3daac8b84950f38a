import { accountOf } from '../account';
import { deleted } from '../call-result';
import { openCredential } from '../credential';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobRemains,
  JobToFind,
  Provider,
  ProviderCapabilities,
} from '../provider';
import { openProviderHttp } from '../provider-http';
import type { AnthropicKind, ProviderConnection } from '../provider-settings';
import { readResultFiles } from '../result-file';
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
    results: ({ resultFiles }, take, call) => {
      const { model, createdSec } = call;
      const read = (line: Buffer) => readResultLine(line, { model, createdSec, mask: api.mask });
      const options = { maxLineBytes: settings.maxResultLineBytes, read, take };
      return readResultFiles(resultFiles, options, (id, push) => api.download(id, push, call));
    },
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

/** A batch is deleted with its input and its results. */
async function deleteBatch(
  api: BatchApi,
  { externalId }: JobRemains,
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  return deleted(externalId === null ? null : await api.delete(externalId, call));
}
