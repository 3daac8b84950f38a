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

/** Builds the header list of a request: name, value, name, value, …. */
export type HeaderBuilder = (request: HeadedRequest, nowMs: number) => string[];

/**
 * The headers of a request to a model server (docs/design/api-contract.md#headers-sent). Omits a given
 * header if it is reserved for us, or if HTTP/1.1 cannot carry it.
 */
export function createHeaderBuilder({ authorization, objective }: HeaderSettings): HeaderBuilder {
  const own = objective === undefined ? [] : ['x-gateway-inference-objective', objective];
  const ofJson = ['content-type', JSON_TYPE, 'accept', JSON_TYPE, ...own];
  const ofContent = ({ body, accept = JSON_TYPE }: HeadedRequest): string[] => {
    if (body instanceof Uint8Array && accept === JSON_TYPE) return ofJson;
    const form = body instanceof Uint8Array ? null : body;
    const length = form === null ? [] : ['content-length', String(form.bytes)];
    return ['content-type', form?.contentType ?? JSON_TYPE, 'accept', accept, ...length, ...own];
  };
  // The requests of a chunk mostly share one object of given headers, so what follows from it is made once.
  const passed = new WeakMap<HeadedRequest['headers'], readonly string[]>();
  const passedOf = (given: HeadedRequest['headers']): readonly string[] => {
    const known = passed.get(given);
    if (known !== undefined) return known;
    const flat: string[] = [];
    const isAuthorized = addGiven(flat, given);
    if (!isAuthorized && authorization !== null) flat.push('authorization', authorization);
    passed.set(given, flat);
    return flat;
  };
  return (request, nowMs) => {
    const leftMs = Math.max(0, Math.floor(request.deadlineMs - nowMs));
    const ofLine = ['x-request-id', request.requestId, 'x-slo-ttft-ms', String(leftMs)];
    return ofLine.concat(ofContent(request), passedOf(request.headers));
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
