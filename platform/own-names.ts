import { isIP } from 'node:net';
import type { Config } from './config-schema';

/** The headers that show which server a request is meant for, and which web page it comes from. */
export interface RequestOrigin {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
}

/** The fault of a request's origin, as a message for its sender; null if there is none. */
export type OriginCheck = (request: RequestOrigin) => string | null;

/** An error quotes at most this many characters of a header. */
const SHOWN_CHARS = 100;

/** What an origin check depends on. */
export interface OriginRules {
  readonly mode: Config['auth']['mode'];
  /** Further names of the server; undefined if the operator lists none. */
  readonly allowedHosts: readonly string[] | undefined;
  /** The setting that lists them, for messages. */
  readonly setting: string;
}

/** The rules of the API and of the observability ports of API and workers. */
export function apiOriginRules({ api, auth }: Pick<Config, 'api' | 'auth'>): OriginRules {
  return { mode: auth.mode, allowedHosts: api.allowed_hosts, setting: 'api.allowed_hosts' };
}

/** The rules of both ports of the gateway. */
export function gatewayOriginRules({
  gateway,
  auth,
}: Pick<Config, 'gateway' | 'auth'>): OriginRules {
  const { allowed_hosts: allowedHosts } = gateway;
  return { mode: auth.mode, allowedHosts, setting: 'gateway.allowed_hosts' };
}

/**
 * The origin check of a port that listens on `listenHost` (docs/design/api-contract.md#web-pages).
 *
 * Without authentication, any web page that a browser on this machine opens can send requests to a
 * loopback port. If an attacker points a DNS name at 127.0.0.1, the page may even read the responses (DNS
 * rebinding). So a request must name this server by one of its own names, and must not come from a page of
 * another origin. With authentication, a page has no key to send, so names are checked only if the setting
 * lists some.
 */
export function originCheck(rules: OriginRules, listenHost: string): OriginCheck {
  const { mode, allowedHosts: allowed, setting } = rules;
  const names = allowed === undefined && mode !== 'none' ? null : ownNames(listenHost, allowed);
  // Nearly all requests name the server alike, and to parse the name costs more than all other checks.
  let lastOwn: string | undefined;
  const isOwn = (host: string): boolean => {
    if (names === null || host === lastOwn) return true;
    if (!names.has(hostName(host))) return false;
    lastOwn = host;
    return true;
  };
  return ({ host, origin, fetchSite }) => {
    if (host !== undefined && !isOwn(host)) {
      return `The host ${shown(host)} is not a name of this server. If it should be one, its operator must add it to the setting ${setting}.`;
    }
    if (mode !== 'none') return null;
    if (origin !== undefined && !isOwnOrigin(origin, host, allowed ?? [])) {
      return `Web pages of ${shown(origin)} may not use this server: with auth.mode none it serves only its own origin. If this page should be served, the operator must add its host to the setting ${setting}.`;
    }
    // A repeated header arrives as a list.
    if (fetchSite?.toLowerCase().includes('cross-site')) {
      return 'This request comes from a web page of another site (Sec-Fetch-Site: cross-site). With auth.mode none this server does not answer such requests.';
    }
    return null;
  };
}

interface NameSet {
  has(name: string | null): boolean;
}

/**
 * Loopback names, the listening address, and the names that the operator lists. A port that other machines
 * can reach may have addresses that we do not know, so it accepts any IP address. That is safe, because DNS
 * rebinding needs a name.
 */
function ownNames(listenHost: string, allowed: readonly string[] = []): NameSet {
  const listed = new Set(allowed.map((name) => name.toLowerCase()));
  const own = bare(listenHost.toLowerCase());
  const isPublic = !isLoopbackName(own);
  return {
    has: (name) =>
      listed.has('*') ||
      (name !== null &&
        (isLoopbackName(name) ||
          name === own ||
          listed.has(name) ||
          (isPublic && isIP(name) !== 0))),
  };
}

/** Whether `host` is a loopback name or address, which only this machine can reach. */
export function isLoopbackName(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Whether a page comes from this server itself, or from a host that the operator lists. */
function isOwnOrigin(
  origin: string,
  host: string | undefined,
  allowed: readonly string[],
): boolean {
  if (allowed.includes('*')) return true;
  const place = /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]?.toLowerCase();
  if (place === undefined) return false;
  const name = hostName(place);
  return place === host?.toLowerCase() || allowed.some((listed) => listed.toLowerCase() === name);
}

/** The name in a `Host` header, without port, brackets and trailing dot; null if it is malformed. */
function hostName(host: string): string | null {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]/@\s]+)(?::\d{0,5})?$/.exec(host.toLowerCase());
  if (match?.[1] === undefined) return null;
  const name = bare(match[1]);
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

function bare(host: string): string {
  return host.startsWith('[') ? host.slice(1, -1) : host;
}

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}
