import { isJsonObject } from '../../core/openai/json-object';
import { idempotentResult, type AnswerReader } from '../call-result';
import { readRpcErrorBody } from '../google-models/rpc-status';
import type { CallOptions, IdempotentResult } from '../provider';
import type { ProviderHttp } from '../provider-http';
import type { RemoteFolder } from '../remote-folder';

/** A folder of a bucket in Google Cloud Storage. */
export interface GcsFolderSettings {
  readonly bucket: string;
  /** Beginning of all names: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** Calls of Cloud Storage, with the credential. */
export interface GcsAccess {
  /** At `https://storage.googleapis.com`, or a service with its JSON API. */
  readonly http: ProviderHttp;
  readonly mask: (text: string) => string;
}

interface Page {
  readonly names: readonly string[];
  readonly next: string | null;
}

/**
 * Opens a folder in Cloud Storage, by its JSON API (https://cloud.google.com/storage/docs/json_api/v1/objects). It
 * makes no call. An object is written with one request and appears as a whole; a write that breaks off changes
 * nothing. So an upload begins anew with each attempt, and needs no session that has to be remembered.
 */
export function openGcsFolder(settings: GcsFolderSettings, access: GcsAccess): RemoteFolder {
  const { bucket, prefix } = settings;
  const root = `gs://${bucket}/${prefix}`;
  const api = new GcsApi(bucket, access);
  return {
    uri: (name) => root + name,
    nameOf: (uri) => (uri.startsWith(root) ? uri.slice(root.length) : null),
    put: (name, input, call) => api.put(prefix + name, input, call),
    read: async (name, take, call) => {
      const read = await api.read(prefix + name, take, call);
      // The error of a download is a plain text. Only an object says of itself that it is gone.
      return read.outcome === 'auth' && read.failure.status === 404
        ? orElse(await api.look(prefix + name, call), read)
        : read;
    },
    list: async (start, call) => {
      const names: string[] = [];
      for (let token: string | null = null; ;) {
        const page: IdempotentResult<Page> = await api.page(prefix + start, token, call);
        if (page.outcome !== 'ok') return page;
        names.push(...page.value.names.map((name) => name.slice(prefix.length)));
        if (page.value.next === null) return { outcome: 'ok', value: names };
        token = page.value.next;
      }
    },
    delete: async (name, call) => {
      const deleted = await api.delete(prefix + name, call);
      return deleted.outcome === 'gone' ? DONE : deleted;
    },
  };
}

const DONE: IdempotentResult<void> = { outcome: 'ok', value: undefined };

function orElse(
  look: IdempotentResult<void>,
  read: IdempotentResult<void>,
): IdempotentResult<void> {
  return look.outcome === 'ok' ? read : look;
}

/** The calls of the API, each classified. */
class GcsApi {
  readonly #objects: string;
  readonly #uploads: string;
  readonly #access: GcsAccess;

  constructor(bucket: string, access: GcsAccess) {
    this.#objects = `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
    this.#uploads = `/upload${this.#objects}`;
    this.#access = access;
  }

  async put(
    name: string,
    body: Parameters<RemoteFolder['put']>[1],
    { signal }: CallOptions,
  ): Promise<IdempotentResult<void>> {
    const path = `${this.#uploads}?uploadType=media&fields=name&name=${encodeURIComponent(name)}`;
    const headers = ['content-type', 'application/octet-stream'];
    const end = await this.#access.http.send({ method: 'POST', path, headers, body, signal });
    return this.#done(end, (json) => isJsonObject(json) && json['name'] === name);
  }

  async read(
    name: string,
    take: (piece: Buffer) => Promise<void>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<void>> {
    const path = `${this.#at(name)}?alt=media`;
    const end = await this.#access.http.download({ method: 'GET', path, signal }, take);
    return this.#done(end, () => true);
  }

  async look(name: string, { signal }: CallOptions): Promise<IdempotentResult<void>> {
    const path = `${this.#at(name)}?fields=name`;
    const end = await this.#access.http.send({ method: 'GET', path, signal });
    return this.#done(end, isJsonObject);
  }

  async page(
    prefix: string,
    token: string | null,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<Page>> {
    const next = token === null ? '' : `&pageToken=${encodeURIComponent(token)}`;
    const fields = 'fields=items(name),nextPageToken';
    const path = `${this.#objects}?prefix=${encodeURIComponent(prefix)}&${fields}${next}`;
    const end = await this.#access.http.send({ method: 'GET', path, signal });
    return idempotentResult(
      end,
      this.#reader((json) => {
        const page = readPage(json);
        // A service that ignores the token would be asked for the same page forever.
        return page?.next === token && token !== null ? null : page;
      }),
    );
  }

  async delete(name: string, { signal }: CallOptions): Promise<IdempotentResult<void>> {
    const end = await this.#access.http.send({ method: 'DELETE', path: this.#at(name), signal });
    return this.#done(end, () => true);
  }

  #at(name: string): string {
    return `${this.#objects}/${encodeURIComponent(name)}`;
  }

  #done(
    end: Parameters<typeof idempotentResult>[0],
    isDone: (json: unknown) => boolean,
  ): IdempotentResult<void> {
    const result = idempotentResult(
      end,
      this.#reader((json) => (isDone(json) ? true : null)),
    );
    return result.outcome === 'ok' ? DONE : result;
  }

  #reader<Value>(value: (json: unknown) => Value | null): AnswerReader<Value> {
    return { value, error: readRpcErrorBody, mask: this.#access.mask };
  }
}

/** A page of a list; null if it is none. A list without objects has no `items`. */
function readPage(json: unknown): Page | null {
  if (!isJsonObject(json)) return null;
  const { items = [], nextPageToken: next = null } = json;
  if (!Array.isArray(items) || (next !== null && typeof next !== 'string')) return null;
  const names = items.map((item: unknown) => (isJsonObject(item) ? item['name'] : null));
  return names.every((name) => typeof name === 'string') ? { names, next } : null;
}
