import { z } from 'zod';
import { blobReader, withXmlError } from '../azure-container/blob-error';
import { readSignedJson } from '../azure-container/signed-file';
import type { Recording } from '../audio/staged-recording';
import { createResult, idempotentResult, type AnswerReader } from '../call-result';
import type { Credential } from '../credential';
import { readErrorObject } from '../openai/error-object';
import type { CallOptions, CreateResult, IdempotentResult, SendOptions } from '../provider';
import { openProviderHttp, type ProviderHttp } from '../provider-http';
import type { ProviderConnection } from '../provider-settings';
import { maskedSignatures, openSignedUrls, type SignedUrls } from '../signed-urls';
import { readSarvamJob, type SarvamJob } from './job-state';

/** A job that may be given recordings. */
export interface InitiatedJob {
  readonly id: string;
  /** Where its recordings are kept, such as `Azure`. */
  readonly container: string;
}

/** Addresses of files by their names. */
export type FileAddresses = ReadonlyMap<string, string>;

const JOBS = '/speech-to-text/job/v1';
const initiated = z.object({ job_id: z.string().min(1), storage_container_type: z.string() });
const addresses = z.record(z.string(), z.object({ file_url: z.string() }));
const uploads = z.object({ upload_urls: addresses });
const downloads = z.object({ download_urls: addresses });

/** The calls of Sarvam's batches of recordings, each classified. */
export class SarvamApi {
  readonly #http: ProviderHttp;
  readonly #signed: SignedUrls;
  readonly #maxBytes: number;
  readonly #mask: (text: string) => string;

  constructor(settings: ProviderConnection, credential: Credential | null) {
    const authorize = (): readonly string[] =>
      credential === null ? [] : ['api-subscription-key', credential.current()];
    this.#http = openProviderHttp({ ...settings, authorize });
    this.#signed = openSignedUrls(settings);
    this.#maxBytes = settings.maxResultLineBytes;
    this.#mask = (text) => maskedSignatures(credential?.mask(text) ?? text);
  }

  /** Makes a job that does nothing before it is started. */
  initiate(parameters: object, call: CallOptions): Promise<IdempotentResult<InitiatedJob>> {
    return this.#post(JOBS, { job_parameters: parameters }, call, (json) => {
      const parsed = initiated.safeParse(json);
      if (!parsed.success) return null;
      const { job_id: id, storage_container_type: container } = parsed.data;
      return { id, container };
    });
  }

  /** Addresses to which the recordings of a job are written. */
  uploadAddresses(
    id: string,
    files: readonly string[],
    call: CallOptions,
  ): Promise<IdempotentResult<FileAddresses>> {
    return this.#post(`${JOBS}/upload-files`, { job_id: id, files }, call, (json) =>
      addressesOf(uploads.safeParse(json).data?.upload_urls, files),
    );
  }

  /** Writes a recording. */
  async write(
    url: string,
    { input, container }: { readonly input: Recording['input']; readonly container: string },
    { signal }: CallOptions,
  ): Promise<IdempotentResult<true>> {
    const type = ['content-type', 'application/octet-stream'];
    const isAzure = container.toLowerCase().startsWith('azure');
    const headers = isAzure ? ['x-ms-blob-type', 'BlockBlob', ...type] : type;
    const end = await this.#signed.upload(url, { input, headers }, signal);
    return idempotentResult(
      withXmlError(end),
      blobReader<true>(() => true, this.#mask),
    );
  }

  /** Starts a job. */
  async start(id: string, call: SendOptions): Promise<CreateResult> {
    const path = `${JOBS}/${encodeURIComponent(id)}/start`;
    const end = await this.#http.send({
      ...{ method: 'POST', path, json: {} },
      ...call,
      usesNewConnection: true,
    });
    return createResult(end, this.#reader(this.#readJob));
  }

  /** One look at a job. */
  async job(id: string, { signal }: CallOptions): Promise<IdempotentResult<SarvamJob>> {
    const path = `${JOBS}/${encodeURIComponent(id)}/status`;
    const end = await this.#http.send({ method: 'GET', path, signal });
    return idempotentResult(end, this.#reader(this.#readJob));
  }

  /** Addresses of the results of a job. */
  downloadAddresses(
    id: string,
    files: readonly string[],
    call: CallOptions,
  ): Promise<IdempotentResult<FileAddresses>> {
    return this.#post(`${JOBS}/download-files`, { job_id: id, files }, call, (json) =>
      addressesOf(downloads.safeParse(json).data?.download_urls, files),
    );
  }

  /** The JSON value of a result; undefined if it is none. */
  read(
    url: string,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<{ readonly json: unknown }>> {
    const options = { maxBytes: this.#maxBytes, mask: this.#mask, signal };
    return readSignedJson(this.#signed, url, options);
  }

  async close(): Promise<void> {
    await Promise.all([this.#http.close(), this.#signed.close()]);
  }

  readonly #readJob = (json: unknown): SarvamJob | null => readSarvamJob(json, this.#mask);

  async #post<Value>(
    path: string,
    json: unknown,
    { signal }: CallOptions,
    value: (json: unknown) => Value | null,
  ): Promise<IdempotentResult<Value>> {
    const end = await this.#http.send({ method: 'POST', path, json, signal });
    return idempotentResult(end, this.#reader(value));
  }

  #reader<Value>(value: AnswerReader<Value>['value']): AnswerReader<Value> {
    return { value, error: readErrorObject, mask: this.#mask };
  }
}

/** Null if one of the files has no address. */
function addressesOf(
  urls: z.infer<typeof addresses> | undefined,
  files: readonly string[],
): FileAddresses | null {
  if (urls === undefined || files.some((file) => !Object.hasOwn(urls, file))) return null;
  return new Map(Object.entries(urls).map(([file, { file_url: url }]) => [file, url]));
}
