import { accountOf } from '../account';
import { mapResult } from '../call-result';
import { cancelOrLook } from '../cancel-or-look';
import { inputName, outputName, removeJobFiles } from '../gcs-folder/job-files';
import { openGoogleCloud } from '../google-cloud';
import type {
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
import { findJob, listMarked } from './job-list';
import { createBody } from './job-request';
import { readResultLine } from './result-line';

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
  const { http, folder, mask, close } = openGoogleCloud(settings);
  const api = new VertexApi(http, settings, mask);
  const context = { api, folder, maxResultLineBytes: settings.maxResultLineBytes };
  return {
    account: accountOf(settings),
    capabilities: CAPABILITIES,
    encode: encodeInputLine,
    completionWindow: () => null,
    upload: async ({ jobId }, input, call) => {
      const name = inputName(jobId);
      return mapResult(await folder.put(name, input, call), () => folder.uri(name));
    },
    inputState: async () => ({ outcome: 'ok', value: 'ready' }),
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => {
      const places = { input: job.remoteInput ?? '', output: folder.uri(outputName(job.jobId)) };
      return api.create(createBody(job, places), call);
    },
    status: async (id, call) => mapResult(await api.job(id, call), ({ status }) => status),
    results: (job, take, call) => readResults(context, { job, take }, call),
    cancel: (id, call) =>
      cancelOrLook(
        async () => mapResult(await api.cancel(id, call), () => ({ state: 'cancelling' as const })),
        async () => mapResult(await api.job(id, call), ({ status }) => status),
      ),
    listMarked: (marker, call) => listMarked(api, marker, call),
    cleanup: (remains, call) => removeJobFiles(folder, remains, call),
    close,
  };
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
