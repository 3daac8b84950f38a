import { randomUUID } from 'node:crypto';
import { accountOf } from '../account';
import { deleted, inputStateOf, mapResult } from '../call-result';
import { cancelOrLook } from '../cancel-or-look';
import { openCredential } from '../credential';
import type {
  CallOptions,
  FoundJob,
  IdempotentResult,
  JobToFind,
  MarkedJob,
  MarkerToList,
  Provider,
} from '../provider';
import { openProviderHttp } from '../provider-http';
import type { ProviderSettings } from '../provider-settings';
import { readResultFiles } from '../result-file';
import { createdJob, OpenAiApi } from './batch-api';
import { markedOn, searchPage, type BatchPage } from './batch-list';
import type { OpenAiDialect } from './dialect';
import { encodeInputLine } from './input-line';
import { readResultLine } from './result-line';
import { uploadForm } from './upload-form';

/**
 * The adapter for hosts that speak OpenAI's Files and Batches API
 * (docs/design/providers.md#openai-and-its-dialects).
 * @throws config_invalid if the credential cannot be read
 */
export function createOpenAiProvider(dialect: OpenAiDialect, settings: ProviderSettings): Provider {
  const { apiKey } = settings;
  const credential = apiKey === null ? null : openCredential(apiKey);
  const authorize = (): readonly string[] =>
    credential === null ? [] : dialect.authorize(credential.current());
  const http = openProviderHttp({ ...settings, authorize });
  const api = new OpenAiApi(dialect, http, (text) => credential?.mask(text) ?? text);
  return {
    account: accountOf(settings),
    capabilities: dialect.capabilities,
    encode: (line) => ({ kind: 'line', bytes: encodeInputLine(line, dialect.linesNameUrl) }),
    completionWindow: (timeLeftMs) => dialect.completionWindow(timeLeftMs),
    upload: ({ jobId }, input, call) => {
      const fileName = `${jobId}.jsonl`;
      const fields = dialect.uploadFields(fileName);
      const form = uploadForm({ fileName, fields, boundary: `nightshift-${randomUUID()}` }, input);
      const headers = ['content-type', form.contentType, ...dialect.idempotencyHeaders(jobId)];
      return api.upload({ headers, body: form.body }, call);
    },
    inputState: async (file, call) =>
      dialect.processesInputs
        ? inputStateOf(await api.inputState(file, call))
        : { outcome: 'ok', value: 'ready' },
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => {
      const headers = dialect.idempotencyHeaders(job.jobId);
      return api.create({ headers, json: dialect.createBody(job) }, call);
    },
    status: async (id, call) => mapResult(await api.batch(id, call), ({ status }) => status),
    results: ({ resultFiles }, take, call) => {
      const read = (line: Buffer) => readResultLine(line, api.mask);
      const options = { maxLineBytes: settings.maxResultLineBytes, read, take };
      return readResultFiles(resultFiles, options, (file, push) => api.download(file, push, call));
    },
    cancel: (id, call) =>
      cancelOrLook(
        async () => mapResult(await api.cancel(id, call), ({ status }) => status),
        async () => mapResult(await api.batch(id, call), ({ status }) => status),
      ),
    ...(dialect.capabilities.storesMarker
      ? { listMarked: (marker, call) => listMarked(api, marker, call) }
      : {}),
    cleanup: async ({ remoteInputs, resultFiles }, call) => {
      for (const file of [...remoteInputs, ...resultFiles]) {
        const result = deleted(await api.deleteFile(file, call));
        if (result.outcome !== 'ok') return result;
      }
      return { outcome: 'ok', value: undefined };
    },
    close: () => http.close(),
  };
}

async function findJob(
  api: OpenAiApi,
  job: JobToFind,
  call: CallOptions,
): Promise<IdempotentResult<FoundJob>> {
  for (let after: string | null = null; ;) {
    const result: IdempotentResult<BatchPage> = await api.page(after, call);
    if (result.outcome !== 'ok') return result;
    const found = searchPage(result.value, job);
    if (found === 'none') return { outcome: 'ok', value: { kind: 'none' } };
    if (found !== 'more') return { outcome: 'ok', value: { kind: 'job', job: createdJob(found) } };
    after = result.value.next;
  }
}

async function listMarked(
  api: OpenAiApi,
  marker: MarkerToList,
  call: CallOptions,
): Promise<IdempotentResult<MarkedJob[]>> {
  const marked: MarkedJob[] = [];
  for (let after: string | null = null; ;) {
    const result: IdempotentResult<BatchPage> = await api.page(after, call);
    if (result.outcome !== 'ok') return result;
    const { jobs, hasMore } = markedOn(result.value, marker);
    marked.push(...jobs);
    if (!hasMore) return { outcome: 'ok', value: marked };
    after = result.value.next;
  }
}
