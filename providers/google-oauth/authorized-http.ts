import { performance } from 'node:perf_hooks';
import {
  openProviderHttp,
  type ProviderCall,
  type ProviderEnd,
  type ProviderHttp,
  type ProviderHttpOptions,
} from '../provider-http';
import type { AccessTokens } from './access-tokens';

/**
 * Calls with an access token of a service account. The token is awaited within the time limit of the call, and a
 * call without one is not sent.
 */
export function openAuthorizedHttp(
  options: Omit<ProviderHttpOptions, 'authorize'>,
  tokens: AccessTokens,
): ProviderHttp {
  const http = openProviderHttp({ ...options, authorize: () => [] });
  const authorized = async (
    call: ProviderCall,
    send: (call: ProviderCall) => Promise<ProviderEnd>,
  ): Promise<ProviderEnd> => {
    const beganMs = performance.now();
    const limitMs = Math.min(call.timeoutMs ?? Infinity, options.requestTimeoutMs);
    const token = await tokens.current({ signal: call.signal, timeoutMs: limitMs });
    if (typeof token !== 'string') return token;
    const { headers = [], timeoutMs } = call;
    const waitedMs = performance.now() - beganMs;
    const end = await send({
      ...call,
      headers: [...headers, 'authorization', `Bearer ${token}`],
      ...(timeoutMs === undefined ? {} : { timeoutMs: Math.max(1, timeoutMs - waitedMs) }),
    });
    if (end.kind === 'answer' && end.status === 401) tokens.forget(token);
    return end;
  };
  return {
    send: (call) => authorized(call, (withToken) => http.send(withToken)),
    download: (call, take) => authorized(call, (withToken) => http.download(withToken, take)),
    close: () => http.close(),
  };
}
