/** Names and values in turn, as in `rawHeaders` of Node: order, case and repetitions are kept. */
export type RawHeaders = readonly string[];

/** Which fields of a client's request go to the backend. */
export interface RequestHeaderRules {
  /** The fields of the client's request. */
  readonly received: RawHeaders;
  /** Fields that we set. They replace received ones of the same name, and are sent last. */
  readonly own: RawHeaders;
  /** Whether the client's `authorization` goes to the backend, unless `own` has one. */
  readonly keepsAuthorization: boolean;
  /** Names of further fields that the backend does not get, in lower case. */
  readonly withheld: readonly string[];
}

/** Fields of one connection (RFC 9110, section 7.6.1); `trailer` announces fields that are sent anyway. */
const CONNECTION_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** The client of the backend sets the first two itself. We answer `expect`, and ask for bytes as they are. */
const REQUEST_ONLY = ['host', 'content-length', 'expect', 'accept-encoding'];
const NOT_SENT = new Set([...CONNECTION_FIELDS, ...REQUEST_ONLY]);
const NOT_RETURNED = new Set(CONNECTION_FIELDS);
/** Only Nightshift's own processes may set fields of this name. */
const RESERVED_PREFIX = 'x-nightshift-';

/**
 * The fields of a request to a backend: those of the client without the fields of its connection, without
 * `x-nightshift-*`, and with our own. `accept-encoding` is `identity`, because answers pass byte for byte and
 * their `usage` is read on the way (docs/design/gateway.md#pass-through).
 */
export function requestHeaders({
  received,
  own,
  keepsAuthorization,
  withheld,
}: RequestHeaderRules): string[] {
  const kept = without(
    received,
    (name) =>
      NOT_SENT.has(name) ||
      (!keepsAuthorization && name === 'authorization') ||
      withheld.includes(name) ||
      hasField(own, name),
  );
  kept.push('accept-encoding', 'identity', ...own);
  return kept;
}

/** The fields of an answer, or its trailers, for the client: without those of the backend's connection. */
export function answerHeaders(received: RawHeaders): string[] {
  return without(received, isNotReturned);
}

const isNotReturned = (name: string): boolean => NOT_RETURNED.has(name);

/** The fields without those of a lower-case name. It copies only if there is one. */
export function withoutField(headers: string[], name: string): string[] {
  if (!hasField(headers, name)) return headers;
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!isNamed(headers[i], name)) kept.push(headers[i] ?? '', headers[i + 1] ?? '');
  }
  return kept;
}

/** The value of the first field of this lower-case name, trimmed; null if there is none. */
export function fieldOf(headers: RawHeaders, name: string): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (isNamed(headers[i], name)) return (headers[i + 1] ?? '').trim();
  }
  return null;
}

function hasField(headers: RawHeaders, name: string): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (isNamed(headers[i], name)) return true;
  }
  return false;
}

/** Lengths are compared first, so few names are converted. */
function isNamed(candidate: string | undefined, name: string): boolean {
  return candidate?.length === name.length && candidate.toLowerCase() === name;
}

/** Copies all fields but those that `isDropped`, are reserved, or are named by `Connection`. */
function without(received: RawHeaders, isDropped: (name: string) => boolean): string[] {
  const perHop = namedByConnection(received);
  const kept: string[] = [];
  for (let i = 0; i + 1 < received.length; i += 2) {
    const given = received[i] ?? '';
    const name = given.toLowerCase();
    if (isDropped(name) || perHop?.has(name) || name.startsWith(RESERVED_PREFIX)) continue;
    kept.push(given, received[i + 1] ?? '');
  }
  return kept;
}

/** Lower-case names in `Connection` fields; null if there are none, which is usual. */
function namedByConnection(received: RawHeaders): Set<string> | null {
  let names: Set<string> | null = null;
  for (let i = 0; i + 1 < received.length; i += 2) {
    if (received[i]?.length !== 10 || received[i]?.toLowerCase() !== 'connection') continue;
    const value = (received[i + 1] ?? '').toLowerCase();
    if (value === 'keep-alive' || value === 'close') continue;
    names ??= new Set();
    for (const name of value.split(',')) names.add(name.trim());
  }
  return names;
}
