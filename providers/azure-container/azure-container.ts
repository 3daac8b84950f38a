import { withoutTrailingSlashes } from '../../platform/http-client/base-url';
import { idempotentResult } from '../call-result';
import type { CallOptions, IdempotentResult } from '../provider';
import { openProviderHttp, type ProviderCall, type ProviderHttp } from '../provider-http';
import type { AzureContainerStorage, ProviderConnection } from '../provider-settings';
import type { RemoteFolder } from '../remote-folder';
import { blobReader, withXmlError } from './blob-error';
import { readBlobPage } from './blob-list';
import { openSasToken } from './sas-token';

/** A folder that must be closed. */
export interface AzureFolder extends RemoteFolder {
  /** A text without the token. */
  mask(text: string): string;
  close(): Promise<void>;
}

const VERSION = ['x-ms-version', '2021-12-02'];

/**
 * Opens a folder in Azure Blob Storage. It makes no call. Addresses carry the token, because the provider reads
 * with it; they are never logged. An object is written with one request, so it may have at most 5,000 MiB:
 * https://learn.microsoft.com/rest/api/storageservices/put-blob.
 * @throws config_invalid if the token cannot be read
 */
export function openAzureContainer(
  settings: AzureContainerStorage,
  connection: Pick<ProviderConnection, 'tls' | 'requestTimeoutMs' | 'transferTimeoutMs'>,
): AzureFolder {
  const { prefix } = settings;
  const { current: token, mask } = openSasToken(settings.sasToken);
  const http = openProviderHttp({ ...connection, url: settings.url, authorize: () => VERSION });
  const root = `${withoutTrailingSlashes(settings.url)}/${escapedPath(prefix)}`;
  const pathOf = (name: string): string => `/${escapedPath(prefix + name)}?${token()}`;
  const done = blobReader<true>(() => true, mask);
  const call = async (
    request: Omit<ProviderCall, 'signal'>,
    { signal }: CallOptions,
  ): Promise<IdempotentResult<void>> =>
    withoutValue(idempotentResult(withXmlError(await http.send({ ...request, signal })), done));
  return {
    uri: (name) => `${root}${escapedPath(name)}?${token()}`,
    nameOf: (uri) => {
      const [address = ''] = uri.split('?');
      return address.startsWith(root) ? unescapedPath(address.slice(root.length)) : null;
    },
    put: (name, input, options) => {
      const headers = ['x-ms-blob-type', 'BlockBlob', 'content-type', 'application/octet-stream'];
      return call({ method: 'PUT', path: pathOf(name), headers, body: input }, options);
    },
    read: async (name, take, { signal }) => {
      const end = await http.download({ method: 'GET', path: pathOf(name), signal }, take);
      return withoutValue(idempotentResult(withXmlError(end), done));
    },
    list: (start, options) => listNames({ http, mask, token, prefix }, start, options),
    delete: async (name, options) => {
      const deleted = await call({ method: 'DELETE', path: pathOf(name) }, options);
      return deleted.outcome === 'gone' ? { outcome: 'ok', value: undefined } : deleted;
    },
    mask,
    close: () => http.close(),
  };
}

async function listNames(
  container: {
    readonly http: ProviderHttp;
    readonly mask: (text: string) => string;
    readonly token: () => string;
    readonly prefix: string;
  },
  start: string,
  { signal }: CallOptions,
): Promise<IdempotentResult<readonly string[]>> {
  const { http, mask, token, prefix } = container;
  const names: string[] = [];
  for (let marker = ''; ;) {
    const query = new URLSearchParams({ restype: 'container', comp: 'list', marker });
    query.set('prefix', prefix + start);
    const end = await http.send({ method: 'GET', path: `?${query.toString()}&${token()}`, signal });
    const text = end.kind === 'answer' ? (end.text ?? '') : '';
    const reader = blobReader(() => readBlobPage(text), mask);
    const page = idempotentResult(withXmlError(end), reader);
    if (page.outcome !== 'ok') return page;
    names.push(...page.value.names.map((name) => name.slice(prefix.length)));
    if (page.value.next === '') return { outcome: 'ok', value: names };
    marker = page.value.next;
  }
}

function escapedPath(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}

function unescapedPath(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

function withoutValue(result: IdempotentResult<true>): IdempotentResult<void> {
  return result.outcome === 'ok' ? { outcome: 'ok', value: undefined } : result;
}
