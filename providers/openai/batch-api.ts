import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import type {
  CallOptions,
  CreatedJob,
  IdempotentResult,
  InputState,
  Provider,
  SendOptions,
} from '../provider';
import type { ProviderHttp } from '../provider-http';
import type { OpenAiBatch } from './batch-object';
import { readPage, type BatchPage } from './batch-list';
import type { OpenAiDialect } from './dialect';
import { textOf } from './error-object';
import { readInputState } from './file-object';

/** The calls of the API, each classified. */
export class OpenAiApi {
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

/** The job that a batch is. */
export function createdJob({ status, createdAtMs }: OpenAiBatch): CreatedJob {
  return { externalId: status.externalId, createdAtMs };
}

/** The id in an answer; null if there is none. */
function idOf(json: unknown): string | null {
  return typeof json === 'object' && json !== null && 'id' in json ? textOf(json.id) : null;
}

function segment(text: string): string {
  return encodeURIComponent(text);
}
