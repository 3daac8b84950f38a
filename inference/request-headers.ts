import { RESERVED_HEADERS } from '../platform/reserved-headers';
import type { BackendRequest } from './backend';

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const JSON_TYPE = 'application/json';

/** The gateway's own headers. */
export interface HeaderSettings {
  /** `Bearer …` of the gateway, or null. */
  readonly authorization: string | null;
  /** `x-gateway-inference-objective`, if configured. */
  readonly objective: string | undefined;
}

/** What the headers of a request are made from. */
export type HeadedRequest = Pick<
  BackendRequest,
  'body' | 'accept' | 'requestId' | 'deadlineMs' | 'headers'
>;

/** The headers of a request, as lists of name, value, name, value, …. */
export interface RequestHeaders {
  /** Those of this request alone. */
  readonly own: string[];
  /** Those that it shares with other requests: the same list for all of them, so that it is checked and rendered once. */
  readonly common: readonly string[];
}

/** Builds the headers of a request. */
export type HeaderBuilder = (request: HeadedRequest, nowMs: number) => RequestHeaders;

/**
 * The headers of a request to a model server (docs/design/api-contract.md#headers-sent). Omits a given
 * header if it is reserved for us, or if HTTP/1.1 cannot carry it.
 */
export function createHeaderBuilder({ authorization, objective }: HeaderSettings): HeaderBuilder {
  const always = objective === undefined ? [] : ['x-gateway-inference-objective', objective];
  // The requests of a chunk mostly share one object of given headers, so what follows from it is made once.
  const passedOf = oncePer((given: HeadedRequest['headers']) => {
    const flat = [...always];
    const isAuthorized = addGiven(flat, given);
    if (!isAuthorized && authorization !== null) flat.push('authorization', authorization);
    return flat;
  });
  const withJsonOf = oncePer((given: HeadedRequest['headers']) => {
    return ['content-type', JSON_TYPE, 'accept', JSON_TYPE, ...passedOf(given)];
  });
  return ({ body, accept = JSON_TYPE, requestId, deadlineMs, headers }, nowMs) => {
    const leftMs = Math.max(0, Math.floor(deadlineMs - nowMs));
    const own = ['x-request-id', requestId, 'x-slo-ttft-ms', String(leftMs)];
    const form = body instanceof Uint8Array ? null : body;
    if (form === null && accept === JSON_TYPE) return { own, common: withJsonOf(headers) };
    own.push('content-type', form?.contentType ?? JSON_TYPE, 'accept', accept);
    if (form !== null) own.push('content-length', String(form.bytes));
    return { own, common: passedOf(headers) };
  };
}

/** `make` is called once for each key, as long as the key is in use. */
function oncePer<K extends object, V extends object>(make: (key: K) => V): (key: K) => V {
  const made = new WeakMap<K, V>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const fresh = make(key);
    made.set(key, fresh);
    return fresh;
  };
}

/** @returns whether `given` contains `authorization` */
function addGiven(flat: string[], given: HeadedRequest['headers']): boolean {
  let isAuthorized = false;
  for (const [givenName, value] of Object.entries(given)) {
    const name = givenName.toLowerCase();
    if (RESERVED_HEADERS.has(name) || !NAME.test(name) || !VALUE.test(value)) continue;
    if (name === 'authorization') isAuthorized = true;
    flat.push(name, value);
  }
  return isAuthorized;
}
