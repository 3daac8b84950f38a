import { NightshiftError } from '../../core/errors';
import { accountOf } from '../account';
import { openGcsFolder } from '../gcs-folder/gcs-folder';
import { AccessTokens } from '../google-oauth/access-tokens';
import { openAuthorizedHttp } from '../google-oauth/authorized-http';
import type {
  CallOptions,
  IdempotentResult,
  JobStatus,
  LineResult,
  Provider,
  ProviderCapabilities,
  ResultOptions,
  ResultTotals,
} from '../provider';
import type { ProviderConnection, VertexKind } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { ResultReader } from '../result-file';
import { VertexApi } from './api';
import { encodeInputLine } from './input-line';
import { inputName, outputName, removeJobFiles } from './job-files';
import { findJob, listMarked } from './job-list';
import { hasEnded } from './job-object';
import { createBody } from './job-request';
import { readResultLine } from './result-line';

/** Scope of access tokens: https://cloud.google.com/vertex-ai/docs/authentication. */
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const RESULTS = /\.jsonl$/;

const CAPABILITIES: ProviderCapabilities = {
  input: 'uploaded',
  find: 'filter',
  storesMarker: true,
  isSingleModel: true,
  canCancel: true,
  maxLines: 200_000,
  maxBytes: 1_000_000_000,
  maxEmbeddingInputs: null,
  minPollMs: 0,
  settleMs: 30_000,
  resultsLagMs: 300_000,
};

interface Context {
  readonly api: VertexApi;
  readonly folder: RemoteFolder;
  readonly maxResultLineBytes: number;
}

/**
 * The adapter for batch prediction of Google models at Vertex AI (docs/design/providers.md#vertex-ai).
 * @throws config_invalid if the credentials cannot be read
 */
export function createVertexProvider(settings: ProviderConnection & VertexKind): Provider {
  const { storage, maxResultLineBytes } = settings;
  const tokens = openTokens(settings);
  const mask = (text: string): string => tokens.mask(text);
  const http = openAuthorizedHttp(settings, tokens);
  const storageHttp = openAuthorizedHttp({ ...settings, url: storage.url }, tokens);
  const folder = openGcsFolder(storage, { http: storageHttp, mask });
  const api = new VertexApi(http, settings, mask);
  const context = { api, folder, maxResultLineBytes };
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: encodeInputLine,
    completionWindow: () => null,
    upload: async ({ jobId }, input, call) => {
      const name = inputName(jobId);
      return valueOf(await folder.put(name, input, call), () => folder.uri(name));
    },
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => {
      const places = { input: job.remoteInput ?? '', output: folder.uri(outputName(job.jobId)) };
      return api.create(createBody(job, places), call);
    },
    status: async (id, call) => valueOf(await api.job(id, call), ({ status }) => status),
    results: (job, take, call) => readResults(context, { job, take }, call),
    cancel: (id, call) => cancelJob(api, id, call),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: (remains, call) => removeJobFiles(folder, remains, call),
    close: async () => {
      await Promise.all([http.close(), storageHttp.close(), tokens.close()]);
    },
  };
}

function openTokens(settings: ProviderConnection): AccessTokens {
  if (settings.apiKey !== null) return new AccessTokens(settings.apiKey, SCOPE, settings);
  const message = `the provider at ${settings.url} needs the key of a service account: set api_key_name or api_key_file`;
  throw new NightshiftError('config_invalid', message);
}

/** The results are the objects with lines in the folder that the job names. */
async function readResults(
  { api, folder, maxResultLineBytes }: Context,
  read: {
    readonly job: JobStatus;
    readonly take: (result: LineResult) => void | Promise<void>;
  },
  call: ResultOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const reader = new ResultReader({
    maxLineBytes: maxResultLineBytes,
    read: (line) => readResultLine(line, call, api.mask),
    take: read.take,
  });
  for (const uri of read.job.resultFiles) {
    const name = folder.nameOf(uri);
    if (name === null) return elsewhere(uri);
    const listed = await folder.list(`${name}/`, call);
    if (listed.outcome !== 'ok') return listed;
    for (const object of listed.value.filter((one) => RESULTS.test(one))) {
      const result = await folder.read(object, (piece) => reader.push(piece), call);
      if (result.outcome !== 'ok') return result;
      await reader.endFile();
    }
  }
  return { outcome: 'ok', value: reader.totals };
}

function elsewhere(uri: string): IdempotentResult<never> {
  const message = `the job wrote its results to ${uri}, outside the folder of the settings`;
  const failure = { code: 'other_folder', message, status: null, retryAfterMs: null };
  return { outcome: 'auth', failure };
}

/** A job that has ended cannot be cancelled. A look at it decides. */
async function cancelJob(
  api: VertexApi,
  id: string,
  call: CallOptions,
): Promise<IdempotentResult<'requested' | 'ended'>> {
  const result = await api.cancel(id, call);
  if (result.outcome === 'ok') return { outcome: 'ok', value: 'requested' };
  const { status } = result.failure;
  if (status !== 400 && status !== 409) return result;
  const look = await api.job(id, call);
  const isEnded = look.outcome === 'ok' && hasEnded(look.value.status.state);
  return isEnded ? { outcome: 'ok', value: 'ended' } : result;
}

function valueOf<From, To>(
  result: IdempotentResult<From>,
  map: (value: From) => To,
): IdempotentResult<To> {
  return result.outcome === 'ok' ? { outcome: 'ok', value: map(result.value) } : result;
}
