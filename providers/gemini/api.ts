import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import { readRpcErrorBody } from '../google-models/rpc-status';
import type {
  CallOptions,
  CreateResult,
  IdempotentResult,
  InputState,
  JobInput,
  NewJob,
  SendOptions,
} from '../provider';
import type { ProviderCall, ProviderEnd, ProviderHttp } from '../provider-http';
import { readBatchPage, type GeminiPage } from './batch-list';
import { readBatchOperation, type GeminiBatch } from './batch-operation';
import { readFileState, uploadedFileName } from './file-object';
import { jobName } from '../job-name';
import { uploadPath, uploadStart } from './resumable-upload';

const PAGE_SIZE = 100;
/** How the API says that a file does not exist, with status 403. */
const NO_SUCH_FILE = /may not exist/i;

/** The calls of the Gemini API, each classified (https://ai.google.dev/api). */
export class GeminiApi {
  readonly #http: ProviderHttp;
  readonly mask: (text: string) => string;

  constructor(http: ProviderHttp, mask: (text: string) => string) {
    this.#http = http;
    this.mask = mask;
  }

  /** Uploads a file with two requests: the answer to the first one names the address of the second. */
  async upload(
    displayName: string,
    input: JobInput,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<string>> {
    const start = await this.#send({ ...uploadStart(displayName, input.bytes), signal });
    const address = start.kind === 'answer' ? (start.header?.('x-goog-upload-url') ?? null) : null;
    const path = address === null ? null : uploadPath(address);
    const started = idempotentResult(
      start,
      this.#reader(() => path),
    );
    if (started.outcome !== 'ok') return started;
    const headers = ['x-goog-upload-command', 'upload, finalize', 'x-goog-upload-offset', '0'];
    const body = { bytes: input.bytes, open: () => input.open() };
    const end = await this.#send({ method: 'POST', path: started.value, headers, body, signal });
    return idempotentResult(end, this.#reader(uploadedFileName));
  }

  async fileState(name: string, { signal }: CallOptions): Promise<IdempotentResult<InputState>> {
    const end = await this.#send({ method: 'GET', path: filePath(name), signal });
    return idempotentResult(end, this.#reader(readFileState));
  }

  async deleteFile(name: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const end = await this.#send({ method: 'DELETE', path: filePath(name), signal });
    return idempotentResult(end, this.#reader(isDone));
  }

  async create(job: NewJob, call: SendOptions): Promise<CreateResult> {
    const model = job.model.includes('/') ? job.model : `models/${job.model}`;
    const path = `/v1beta/${model.split('/').map(encodeURIComponent).join('/')}:batchGenerateContent`;
    const inputConfig = { fileName: job.remoteInput };
    const json = { batch: { displayName: jobName(job), inputConfig } };
    const end = await this.#send({ method: 'POST', path, json, ...call, usesNewConnection: true });
    return createResult(
      end,
      this.#reader((answer) => {
        const batch = readBatchOperation(answer, this.mask);
        if (batch === null) return null;
        return { externalId: batch.status.externalId, createdAtMs: batch.createdAtMs };
      }),
    );
  }

  async batch(id: string, { signal }: CallOptions): Promise<IdempotentResult<GeminiBatch>> {
    const end = await this.#send({ method: 'GET', path: batchPath(id), signal });
    return idempotentResult(
      end,
      this.#reader((json) => {
        const batch = readBatchOperation(json, this.mask);
        return batch?.status.externalId === id ? batch : null;
      }),
    );
  }

  async page(token: string | null, { signal }: CallOptions): Promise<IdempotentResult<GeminiPage>> {
    const cursor = token === null ? '' : `&pageToken=${encodeURIComponent(token)}`;
    const path = `/v1beta/batches?pageSize=${PAGE_SIZE}${cursor}`;
    const end = await this.#send({ method: 'GET', path, signal });
    return idempotentResult(
      end,
      this.#reader((json) => {
        const page = readBatchPage(json, this.mask);
        // A server that ignores the token would be asked for the same page forever.
        return page?.next === token && token !== null ? null : page;
      }),
    );
  }

  /** The answer to a cancel says nothing about the batch. */
  async cancel(id: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const path = `${batchPath(id)}:cancel`;
    const end = await this.#send({ method: 'POST', path, json: {}, signal });
    return idempotentResult(end, this.#reader(isDone));
  }

  async deleteBatch(id: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const end = await this.#send({ method: 'DELETE', path: batchPath(id), signal });
    return idempotentResult(end, this.#reader(isDone));
  }

  async download(
    name: string,
    take: (piece: Buffer) => Promise<void>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<true>> {
    const path = `/download${filePath(name)}:download?alt=media`;
    const end = withExactStatus(await this.#http.download({ method: 'GET', path, signal }, take));
    return idempotentResult(end, this.#reader(isDone));
  }

  async #send(call: ProviderCall): Promise<ProviderEnd> {
    return withExactStatus(await this.#http.send(call));
  }

  #reader<Value>(value: (json: unknown) => Value | null): AnswerReader<Value> {
    return { value, error: readRpcErrorBody, mask: this.mask };
  }
}

/** The API answers a wrong key with 400, and a missing file with 403. They count as 401 and 404. */
function withExactStatus(end: ProviderEnd): ProviderEnd {
  if (end.kind === 'failure') return end;
  const error = readRpcErrorBody(end.json);
  if (end.status === 400 && error?.isKeyRefused === true) return { ...end, status: 401 };
  const isGone = end.status === 403 && NO_SUCH_FILE.test(error?.message ?? '');
  return isGone ? { ...end, status: 404 } : end;
}

function isDone(): true {
  return true;
}

/** @param id with or without `batches/` */
function batchPath(id: string): string {
  return `/v1beta/batches/${encodeURIComponent(id.replace(/^batches\//, ''))}`;
}

/** @param name with or without `files/` */
function filePath(name: string): string {
  return `/v1beta/files/${encodeURIComponent(name.replace(/^files\//, ''))}`;
}
