import { isJsonObject } from '../../core/openai/json-object';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import { readRpcErrorBody } from '../google-models/rpc-status';
import type { CallOptions, IdempotentResult, Provider, SendOptions } from '../provider';
import type { ProviderHttp } from '../provider-http';
import { pageQuery, readTokenPage, type TokenPage } from '../token-pages';
import { readJob, type VertexJob } from './job-object';

const PAGE_SIZE = 100;

/**
 * The calls for batch prediction jobs of a project and location, each classified
 * (https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.batchPredictionJobs).
 */
export class VertexApi {
  readonly #http: ProviderHttp;
  readonly #jobs: string;
  readonly mask: (text: string) => string;

  constructor(
    http: ProviderHttp,
    { project, location }: { readonly project: string; readonly location: string },
    mask: (text: string) => string,
  ) {
    this.#http = http;
    this.#jobs = `/v1/projects/${segment(project)}/locations/${segment(location)}/batchPredictionJobs`;
    this.mask = mask;
  }

  async create(json: unknown, call: SendOptions): ReturnType<Provider['create']> {
    const sent = { json, ...call, usesNewConnection: true };
    const end = await this.#http.send({ method: 'POST', path: this.#jobs, ...sent });
    return createResult(
      end,
      this.#reader((body) => readJob(body, this.mask)?.created ?? null),
    );
  }

  async job(id: string, { signal }: CallOptions): Promise<IdempotentResult<VertexJob>> {
    const path = `${this.#jobs}/${segment(id)}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    return idempotentResult(
      end,
      this.#reader((body) => {
        const job = readJob(body, this.mask);
        return job?.created.externalId === id ? job : null;
      }),
    );
  }

  async page(
    filter: string,
    token: string | null,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<TokenPage<VertexJob>>> {
    const path = `${this.#jobs}?${pageQuery(token, PAGE_SIZE)}&filter=${segment(filter)}`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    const place = { member: 'batchPredictionJobs', token };
    return idempotentResult(
      end,
      this.#reader((body) => readTokenPage(body, place, (one) => readJob(one, this.mask))),
    );
  }

  async cancel(id: string, { signal }: CallOptions): Promise<IdempotentResult<true>> {
    const path = `${this.#jobs}/${segment(id)}:cancel`;
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
