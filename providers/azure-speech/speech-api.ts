import { isJsonObject } from '../../core/openai/json-object';
import { readSignedJson } from '../azure-container/signed-file';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import type { Credential } from '../credential';
import type { CallOptions, CreateResult, IdempotentResult, SendOptions } from '../provider';
import { openProviderHttp, type ProviderCall, type ProviderHttp } from '../provider-http';
import type { AzureSpeechKind, ProviderConnection } from '../provider-settings';
import { openSignedUrls, type SignedUrls } from '../signed-urls';
import { readSpeechJob, type SpeechJob } from './job-state';
import { readSpeechError } from './speech-error';

/** A file of an ended job. */
export interface SpeechFile {
  readonly kind: string;
  /** An address that is signed. */
  readonly contentUrl: string;
}

interface Page<Entry> {
  readonly entries: readonly Entry[];
  readonly hasMore: boolean;
}

const PAGE_SIZE = 100;

/** The calls of Azure Speech's batch transcription, each classified. */
export class SpeechApi {
  readonly #http: ProviderHttp;
  readonly #signed: SignedUrls;
  readonly #version: string;
  readonly #maxBytes: number;
  readonly mask: (text: string) => string;

  constructor(
    settings: ProviderConnection & AzureSpeechKind,
    credential: Credential | null,
    mask: (text: string) => string,
  ) {
    const authorize = (): readonly string[] =>
      credential === null ? [] : ['ocp-apim-subscription-key', credential.current()];
    this.#http = openProviderHttp({ ...settings, authorize });
    this.#signed = openSignedUrls(settings);
    this.#version = settings.apiVersion;
    this.#maxBytes = settings.maxResultLineBytes;
    this.mask = mask;
  }

  async submit(json: unknown, call: SendOptions): Promise<CreateResult> {
    const path = this.#path(':submit', {});
    const end = await this.#http.send({
      method: 'POST',
      path,
      json,
      ...call,
      usesNewConnection: true,
    });
    return createResult(
      end,
      this.#reader((answer) => {
        const job = readSpeechJob(answer);
        return job === null ? null : { externalId: job.externalId, createdAtMs: job.createdAtMs };
      }),
    );
  }

  /** One look at a job. */
  job(id: string, call: CallOptions): Promise<IdempotentResult<SpeechJob>> {
    return this.#call(
      { method: 'GET', path: this.#path(`/${encodeURIComponent(id)}`, {}) },
      readSpeechJob,
      call,
    );
  }

  /** The jobs with this name. */
  jobsNamed(name: string, call: CallOptions): Promise<IdempotentResult<readonly SpeechJob[]>> {
    return this.#pages('', { filter: `displayName eq '${name}'` }, readSpeechJob, call);
  }

  /** The jobs that were created since a time, of all programs. It costs a call for each hundred. */
  jobsSince(sinceMs: number, call: CallOptions): Promise<IdempotentResult<readonly SpeechJob[]>> {
    const filter = `createdDateTime ge ${new Date(sinceMs).toISOString()}`;
    return this.#pages('', { filter }, readSpeechJob, call);
  }

  /** The files of an ended job. */
  files(id: string, call: CallOptions): Promise<IdempotentResult<readonly SpeechFile[]>> {
    return this.#pages(`/${encodeURIComponent(id)}/files`, {}, readFile, call);
  }

  /** The JSON value of a file; undefined if it is none. */
  async content(
    { contentUrl }: SpeechFile,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<{ readonly json: unknown }>> {
    const { mask } = this;
    return readSignedJson(this.#signed, contentUrl, { maxBytes: this.#maxBytes, mask, signal });
  }

  /** Deletes a job and its results. */
  remove(id: string, call: CallOptions): Promise<IdempotentResult<true>> {
    return this.#call(
      { method: 'DELETE', path: this.#path(`/${encodeURIComponent(id)}`, {}) },
      () => true,
      call,
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.#http.close(), this.#signed.close()]);
  }

  /** All entries of a list. It costs one call per page. */
  async #pages<Entry>(
    below: string,
    query: Readonly<Record<string, string>>,
    readEntry: (json: unknown) => Entry | null,
    call: CallOptions,
  ): Promise<IdempotentResult<readonly Entry[]>> {
    const entries: Entry[] = [];
    for (;;) {
      const place = { ...query, skip: String(entries.length), top: String(PAGE_SIZE) };
      const request = { method: 'GET', path: this.#path(below, place) } as const;
      const page = await this.#call(request, (json) => readPage(json, readEntry), call);
      if (page.outcome !== 'ok') return page;
      entries.push(...page.value.entries);
      if (!page.value.hasMore || page.value.entries.length === 0)
        return { outcome: 'ok', value: entries };
    }
  }

  async #call<Value>(
    request: Omit<ProviderCall, 'signal'>,
    value: (json: unknown) => Value | null,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<Value>> {
    return idempotentResult(await this.#http.send({ ...request, signal }), this.#reader(value));
  }

  #reader<Value>(value: AnswerReader<Value>['value']): AnswerReader<Value> {
    return { value, error: readSpeechError, mask: this.mask };
  }

  #path(below: string, query: Readonly<Record<string, string>>): string {
    const all = new URLSearchParams({ 'api-version': this.#version, ...query });
    return `/speechtotext/transcriptions${below}?${all.toString()}`;
  }
}

/** Null if one of the entries cannot be read: it may be the one that is looked for. */
function readPage<Entry>(
  json: unknown,
  readEntry: (json: unknown) => Entry | null,
): Page<Entry> | null {
  if (!isJsonObject(json) || !Array.isArray(json['values'])) return null;
  const entries = json['values'].map((value: unknown) => readEntry(value));
  const known = entries.filter((entry) => entry !== null);
  return known.length < entries.length
    ? null
    : { entries: known, hasMore: typeof json['@nextLink'] === 'string' };
}

function readFile(json: unknown): SpeechFile | null {
  if (!isJsonObject(json) || !isJsonObject(json['links'])) return null;
  const { kind, links } = json;
  const { contentUrl } = links;
  return typeof kind === 'string' && typeof contentUrl === 'string' ? { kind, contentUrl } : null;
}
