import type { BackendRequest } from './backend';

/**
 * Never taken from a caller's headers: hop-by-hop and framing headers belong to the connection,
 * the others are ours (contract §7.1 "Requests out"). `accept-encoding` is out because a foreign
 * list could name a coding we do not decode.
 */
const RESERVED = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-gateway-inference-objective',
  'x-request-id',
  'x-slo-ttft-ms',
]);
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface HeaderSettings {
  /** `Bearer …` of the gateway, or null. */
  readonly authorization: string | null;
  /** `x-gateway-inference-objective`, where configured. */
  readonly objective: string | undefined;
}

/** Makes the flat header list of a request: name, value, name, value, …. */
export type HeaderBuilder = (request: BackendRequest, nowMs: number) => string[];

/**
 * Headers of contract §7.1 "Requests out". The part that all lines of a chunk share is made once
 * per `headers` object. A header that HTTP/1.1 cannot carry is left out.
 */
export function createHeaderBuilder(settings: HeaderSettings): HeaderBuilder {
  const shared = new WeakMap<BackendRequest['headers'], readonly string[]>();
  return (request, nowMs) => {
    let base = shared.get(request.headers);
    if (base === undefined) {
      base = sharedHeaders(request.headers, settings);
      shared.set(request.headers, base);
    }
    const leftMs = Math.max(0, Math.floor(request.deadlineMs - nowMs));
    return base.concat('x-request-id', request.requestId, 'x-slo-ttft-ms', String(leftMs));
  };
}

function sharedHeaders(
  given: BackendRequest['headers'],
  { authorization, objective }: HeaderSettings,
): readonly string[] {
  const flat = ['content-type', 'application/json', 'accept', 'application/json'];
  if (objective !== undefined) flat.push('x-gateway-inference-objective', objective);
  let hasAuthorization = false;
  for (const [givenName, value] of Object.entries(given)) {
    const name = givenName.toLowerCase();
    if (RESERVED.has(name) || !NAME.test(name) || !VALUE.test(value)) continue;
    if (name === 'authorization') hasAuthorization = true;
    flat.push(name, value);
  }
  if (!hasAuthorization && authorization !== null) flat.push('authorization', authorization);
  return flat;
}
