import { isJsonObject } from '../../core/openai/json-object';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import { readRpcErrorBody } from '../google-models/rpc-status';
import type { CallOptions, CreateResult, IdempotentResult, SendOptions } from '../provider';
import type { ProviderHttp } from '../provider-http';
import { pageQuery, readTokenPage, type TokenPage } from '../token-pages';
import { readOperation, type SpeechOperation } from './operation';

const PAGE_SIZE = 100;

/**
 * The calls of Cloud Speech-to-Text for the jobs of a project and location, each classified
 * (https://cloud.google.com/speech-to-text/v2/docs/reference/rest).
 */
export class SpeechApi {
  readonly #http: ProviderHttp;
  readonly #location: string;
  readonly mask: (text: string) => string;

  constructor(
    http: ProviderHttp,
    { project, location }: { readonly project: string; readonly location: string },
    mask: (text: string) => string,
  ) {
    this.#http = http;
    this.#location = `/v2/projects/${segment(project)}/locations/${segment(location)}`;
    this.mask = mask;
  }

  async create(json: unknown, call: SendOptions): Promise<CreateResult> {
    const path = `${this.#location}/recognizers/_:batchRecognize`;
    const sent = { json, ...call, usesNewConnection: true };
    const end = await this.#http.send({ method: 'POST', path, ...sent });
    return createResult(
      end,
      this.#reader((body) => readOperation(body)?.created ?? null),
    );
  }

  async operation(id: string, { signal }: CallOptions): Promise<IdempotentResult<SpeechOperation>> {
    const path = `${this.#location}/operations/${segment(id)}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    return idempotentResult(
      end,
      this.#reader((body) => {
        const operation = readOperation(body);
        return operation?.created.externalId === id ? operation : null;
      }),
    );
  }

  async page(
    token: string | null,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<TokenPage<SpeechOperation>>> {
    const path = `${this.#location}/operations?${pageQuery(token, PAGE_SIZE)}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    const place = { member: 'operations', token };
    return idempotentResult(
      end,
      this.#reader((body) => readTokenPage(body, place, readOperation)),
    );
  }

  async cancel(id: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const path = `${this.#location}/operations/${segment(id)}:cancel`;
    const end = await this.#http.send({ method: 'POST', path, json: {}, signal });
    return idempotentResult(
      end,
      this.#reader((body) => (isJsonObject(body) ? true : null)),
    );
  }

  #reader<Value>(value: (json: unknown) => Value | null): AnswerReader<Value> {
    return { value, error: readRpcErrorBody, mask: this.mask };
  }
}

function segment(text: string): string {
  return encodeURIComponent(text);
}
