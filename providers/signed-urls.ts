import type { JobInput } from './provider';
import { openProviderHttp, type ProviderEnd, type ProviderHttp } from './provider-http';
import type { ProviderConnection } from './provider-settings';

/**
 * Calls to addresses that a provider has signed, at whatever host they are. The address is the permission, so no
 * key is sent there. Each call is one attempt (docs/design/providers.md#signed-addresses).
 */
export interface SignedUrls {
  /** Passes a file on, piece by piece. Rejects with the error of `take`. */
  download(
    url: string,
    take: (piece: Buffer) => Promise<void>,
    signal: AbortSignal,
  ): Promise<ProviderEnd>;
  /** Writes a file. @param headers name, value, name, value, … */
  upload(
    url: string,
    file: { readonly input: JobInput; readonly headers: readonly string[] },
    signal: AbortSignal,
  ): Promise<ProviderEnd>;
  close(): Promise<void>;
}

/** Opens no connection before the first call. An address without TLS is called only if the provider has none. */
export function openSignedUrls(connection: ProviderConnection): SignedUrls {
  const hosts = new Map<string, ProviderHttp>();
  const isPlain = new URL(connection.url).protocol === 'http:';
  const hostOf = ({ origin }: URL): ProviderHttp => {
    const { tls, requestTimeoutMs, transferTimeoutMs } = connection;
    const authorize = (): readonly string[] => [];
    const http =
      hosts.get(origin) ??
      openProviderHttp({ url: origin, tls, authorize, requestTimeoutMs, transferTimeoutMs });
    hosts.set(origin, http);
    return http;
  };
  const addressOf = (
    url: string,
  ): { readonly http: ProviderHttp; readonly path: string } | null => {
    const parsed = URL.canParse(url) ? new URL(url) : null;
    if (parsed === null || (parsed.protocol !== 'https:' && !isPlain)) return null;
    // The text after the host, byte for byte: a part of it is signed.
    return { http: hostOf(parsed), path: url.slice(url.indexOf(parsed.host) + parsed.host.length) };
  };
  return {
    download: async (url, take, signal) => {
      const address = addressOf(url);
      if (address === null) return unusable();
      return address.http.download({ method: 'GET', path: address.path, signal }, take);
    },
    upload: async (url, { input, headers }, signal) => {
      const address = addressOf(url);
      if (address === null) return unusable();
      return address.http.send({ method: 'PUT', path: address.path, headers, body: input, signal });
    },
    close: async () => {
      await Promise.all([...hosts.values()].map((http) => http.close()));
    },
  };
}

/** A text in which no address opens a file any more. A message may quote the address that failed. */
export function maskedSignatures(text: string): string {
  return text.replace(/([?&](?:sig|x-goog-signature|x-amz-signature)=)[^&\s"']+/gi, '$1***');
}

function unusable(): ProviderEnd {
  const message = 'the provider names an address that is not one of https';
  return { kind: 'failure', reason: 'unsent', message, mayBeSent: false };
}
