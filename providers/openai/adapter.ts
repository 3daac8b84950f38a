import { randomUUID } from 'node:crypto';
import { accountOf } from '../account';
import { cancelOrLook } from '../cancel-or-look';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import { openCredential } from '../credential';
import type {
  CallOptions,
  CreatedJob,
  FoundJob,
  IdempotentResult,
  InputState,
  JobStatus,
  JobToFind,
  LineResult,
  MarkedJob,
  MarkerToList,
  Provider,
  ResultTotals,
  SendOptions,
} from '../provider';
import { openProviderHttp, type ProviderHttp } from '../provider-http';
import type { ProviderSettings } from '../provider-settings';
import { ResultReader } from '../result-file';
import type { OpenAiBatch } from './batch-object';
import { markedOn, readPage, searchPage, type BatchPage } from './batch-list';
import type { OpenAiDialect } from './dialect';
import { textOf } from './error-object';
import { readInputState } from './file-object';
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
      dialect.processesInputs ? inputState(api, file, call) : { outcome: 'ok', value: 'ready' },
    find: (job, call) => findJob(api, job, call),
    create: (job, call) => {
      const headers = dialect.idempotencyHeaders(job.jobId);
      return api.create({ headers, json: dialect.createBody(job) }, call);
    },
    status: async (id, call) => valueOf(await api.batch(id, call), ({ status }) => status),
    results: (job, take, call) => readResults(api, { job, take, settings }, call),
    cancel: (id, call) =>
      cancelOrLook(
        async () => valueOf(await api.cancel(id, call), ({ status }) => status),
        async () => valueOf(await api.batch(id, call), ({ status }) => status),
      ),
    ...(dialect.capabilities.storesMarker
      ? { listMarked: (marker, call) => listMarked(api, marker, call) }
      : {}),
    cleanup: async ({ remoteInputs, resultFiles }, call) => {
      for (const file of [...remoteInputs, ...resultFiles]) {
        const result = await api.deleteFile(file, call);
        if (result.outcome !== 'ok' && result.outcome !== 'gone') return result;
      }
      return { outcome: 'ok', value: undefined };
    },
    close: () => http.close(),
  };
}

/** A file that is gone or refused is left to the create, whose refusal is final. */
async function inputState(
  api: OpenAiApi,
  file: string,
  call: CallOptions,
): Promise<IdempotentResult<InputState>> {
  const look = await api.inputState(file, call);
  const isFinal = look.outcome === 'gone' || look.outcome === 'refused';
  return isFinal ? { outcome: 'ok', value: 'ready' } : look;
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

function createdJob({ status, createdAtMs }: OpenAiBatch): CreatedJob {
  return { externalId: status.externalId, createdAtMs };
}

async function readResults(
  api: OpenAiApi,
  read: {
    readonly job: JobStatus;
    readonly take: (result: LineResult) => void | Promise<void>;
    readonly settings: ProviderSettings;
  },
  call: CallOptions,
): Promise<IdempotentResult<ResultTotals>> {
  const { job, take, settings } = read;
  const reader = new ResultReader({
    maxLineBytes: settings.maxResultLineBytes,
    read: (line) => readResultLine(line, api.mask),
    take,
  });
  for (const file of job.resultFiles) {
    const result = await api.download(file, (piece) => reader.push(piece), call);
    if (result.outcome !== 'ok') return result;
    await reader.endFile();
  }
  return { outcome: 'ok', value: reader.totals };
}

function valueOf<From, To>(
  result: IdempotentResult<From>,
  map: (value: From) => To,
): IdempotentResult<To> {
  return result.outcome === 'ok' ? { outcome: 'ok', value: map(result.value) } : result;
}

/** The calls of the API, each classified. */
class OpenAiApi {
  readonly #dialect: OpenAiDialect;
  readonly #http: ProviderHttp;
  readonly mask: (text: string) => string;

  constructor(dialect: OpenAiDialect, http: ProviderHttp, mask: (text: string) => string) {
    this.#dialect = dialect;
    this.#http = http;
    this.mask = mask;
  }

  async upload(
    form: Pick<Parameters<ProviderHttp['send']>[0], 'headers' | 'body'>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<string>> {
    const end = await this.#http.send({
      method: 'POST',
      path: this.#dialect.uploadPath,
      ...form,
      signal,
    });
    return idempotentResult(end, this.#reader(idOf));
  }

  async create(
    request: { readonly headers: readonly string[]; readonly json: unknown },
    call: SendOptions,
  ): ReturnType<Provider['create']> {
    const sent = { ...request, ...call, usesNewConnection: true };
    const end = await this.#http.send({ method: 'POST', path: this.#dialect.batchesPath, ...sent });
    return createResult(
      end,
      this.#reader((json) => {
        const batch = this.#dialect.readCreated(json, this.mask);
        return batch === null ? null : createdJob(batch);
      }),
    );
  }

  async batch(id: string, { signal }: CallOptions): Promise<IdempotentResult<OpenAiBatch>> {
    const end = await this.#http.send({ method: 'GET', path: this.#batchPath(id), signal });
    return idempotentResult(end, this.#reader(this.#batchWithId(id)));
  }

  async page(after: string | null, { signal }: CallOptions): Promise<IdempotentResult<BatchPage>> {
    const path = `${this.#dialect.batchesPath}${this.#dialect.listing.query(after)}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    return idempotentResult(
      end,
      this.#reader((json) => {
        const page = readPage(json, after, this.#dialect, this.mask);
        // A host that ignores the cursor would be asked for the same page forever.
        return page?.next === after && after !== null ? null : page;
      }),
    );
  }

  async cancel(id: string, { signal }: CallOptions): Promise<IdempotentResult<OpenAiBatch>> {
    const path = `${this.#batchPath(id)}/cancel`;
    const end = await this.#http.send({ method: 'POST', path, signal });
    return idempotentResult(end, this.#reader(this.#batchWithId(id)));
  }

  async download(
    file: string,
    take: (piece: Buffer) => Promise<void>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<true>> {
    const path = `/files/${segment(file)}/content`;
    const end = await this.#http.download({ method: 'GET', path, signal }, take);
    return idempotentResult(
      end,
      this.#reader(() => true as const),
    );
  }

  async inputState(id: string, { signal }: CallOptions): Promise<IdempotentResult<InputState>> {
    const end = await this.#http.send({ method: 'GET', path: `/files/${segment(id)}`, signal });
    return idempotentResult(end, this.#reader(readInputState));
  }

  async deleteFile(id: string, { signal }: CallOptions): Promise<IdempotentResult<string>> {
    const end = await this.#http.send({ method: 'DELETE', path: `/files/${segment(id)}`, signal });
    return idempotentResult(end, this.#reader(idOf));
  }

  #batchPath(id: string): string {
    return `${this.#dialect.batchesPath}/${segment(id)}`;
  }

  #batchWithId(id: string): (json: unknown) => OpenAiBatch | null {
    return (json) => {
      const batch = this.#dialect.readBatch(json, this.mask);
      return batch?.status.externalId === id ? batch : null;
    };
  }

  #reader<Value>(value: (json: unknown) => Value | null): AnswerReader<Value> {
    return { value, error: (json) => this.#dialect.readError(json), mask: this.mask };
  }
}

/** The id in an answer; null if there is none. */
function idOf(json: unknown): string | null {
  return typeof json === 'object' && json !== null && 'id' in json ? textOf(json.id) : null;
}

function segment(text: string): string {
  return encodeURIComponent(text);
}
