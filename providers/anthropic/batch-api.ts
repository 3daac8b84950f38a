import { isJsonObject } from '../../core/openai/json-object';
import type { StreamedBody } from '../../platform/http-client/outbound-body';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import type {
  CallOptions,
  CreateResult,
  IdempotentResult,
  JobStatus,
  SendOptions,
} from '../provider';
import type { ProviderHttp } from '../provider-http';
import { readPage, type BatchPage } from './batch-page';
import { readErrorObject } from './error-object';
import { readMessageBatch } from './message-batch';

const BATCHES = '/v1/messages/batches';
/** The API allows 1,000. Pages of this size are far below the limit of an answer. */
const PAGE_SIZE = 100;

/** The calls of the Message Batches API, each classified. */
export class BatchApi {
  readonly #http: ProviderHttp;
  readonly mask: (text: string) => string;

  constructor(http: ProviderHttp, mask: (text: string) => string) {
    this.#http = http;
    this.mask = mask;
  }

  async create(body: StreamedBody, call: SendOptions): Promise<CreateResult> {
    const end = await this.#http.send({
      ...call,
      ...{ method: 'POST', path: BATCHES, body, usesNewConnection: true },
      headers: ['content-type', 'application/json'],
    });
    const value = (json: unknown) => {
      const batch = readMessageBatch(json);
      if (batch === null) return null;
      return { externalId: batch.status.externalId, createdAtMs: batch.createdAtMs };
    };
    return createResult(end, this.#reader(value));
  }

  async batch(id: string, { signal }: CallOptions): Promise<IdempotentResult<JobStatus>> {
    const end = await this.#http.send({ method: 'GET', path: pathOf(id), signal });
    return idempotentResult(end, this.#reader(statusWithId(id)));
  }

  async page(after: string | null, { signal }: CallOptions): Promise<IdempotentResult<BatchPage>> {
    const cursor = after === null ? '' : `&after_id=${encodeURIComponent(after)}`;
    const path = `${BATCHES}?limit=${PAGE_SIZE}${cursor}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    const value = (json: unknown) => {
      const page = readPage(json);
      // A host that ignores the cursor would be asked for the same page forever.
      return page?.next === after && after !== null ? null : page;
    };
    return idempotentResult(end, this.#reader(value));
  }

  async cancel(id: string, { signal }: CallOptions): Promise<IdempotentResult<JobStatus>> {
    const end = await this.#http.send({ method: 'POST', path: `${pathOf(id)}/cancel`, signal });
    return idempotentResult(end, this.#reader(statusWithId(id)));
  }

  async delete(id: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const end = await this.#http.send({ method: 'DELETE', path: pathOf(id), signal });
    return idempotentResult(
      end,
      this.#reader((json) => (isJsonObject(json) && json['id'] === id ? true : null)),
    );
  }

  /** The address is made from the id: `results_url` could lead the key elsewhere. */
  async download(
    id: string,
    take: (piece: Buffer) => Promise<void>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<true>> {
    const path = `${pathOf(id)}/results`;
    const end = await this.#http.download({ method: 'GET', path, signal }, take);
    return idempotentResult(
      end,
      this.#reader(() => true as const),
    );
  }

  #reader<Value>(value: (json: unknown) => Value | null): AnswerReader<Value> {
    return { value, error: readErrorObject, mask: this.mask };
  }
}

function statusWithId(id: string): (json: unknown) => JobStatus | null {
  return (json) => {
    const batch = readMessageBatch(json);
    return batch?.status.externalId === id ? batch.status : null;
  };
}

function pathOf(id: string): string {
  return `${BATCHES}/${encodeURIComponent(id)}`;
}
