import { Readable } from 'node:stream';
import { isJsonObject } from '../../core/openai/json-object';
import type { ApiKeyFile } from '../../platform/api-key-file';
import {
  openProviderHttp,
  type ProviderEnd,
  type ProviderHttp,
  type ProviderHttpOptions,
} from '../provider-http';
import { parseServiceAccount, readCredentials, type ServiceAccount } from './service-account';
import { readToken, tokenForm } from './token-request';

/** How the token endpoint is reached. */
export type TokenConnection = Pick<
  ProviderHttpOptions,
  'tls' | 'requestTimeoutMs' | 'transferTimeoutMs'
>;

/** How long one call may wait for a token. */
export interface TokenWait {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

interface HeldToken {
  readonly token: string;
  readonly renewAtMs: number;
}

/** A token is renewed so long before it expires, at most half of its lifetime. A call lasts less. */
const RENEW_BEFORE_MS = 300_000;
/** Keys and tokens that are remembered for masking: a key rotates rarely, and a token holds for an hour. */
const MAX_MASKED = 16;
const MASK = '***';

/**
 * Access tokens of one service account (docs/design/providers.md#service-accounts). A token is kept in memory until
 * shortly before it expires. The file is read for each call, so a rotated key counts at once; while it cannot be
 * read, the last key counts.
 */
export class AccessTokens {
  readonly #file: ApiKeyFile;
  readonly #scope: string;
  readonly #connection: TokenConnection;
  /** By origin: a rotated key may be for another endpoint. */
  readonly #https = new Map<string, ProviderHttp>();
  readonly #keys: string[] = [];
  readonly #tokens: string[] = [];
  #text: string;
  #account: ServiceAccount;
  #held: HeldToken | null = null;

  /** @throws config_invalid if the file cannot be read or does not hold a service account */
  constructor(file: ApiKeyFile, scope: string, connection: TokenConnection) {
    this.#file = file;
    this.#scope = scope;
    this.#connection = connection;
    this.#text = readCredentials(file);
    this.#account = parseServiceAccount(this.#text, file);
    this.#keys.push(...this.#account.secrets);
  }

  /**
   * A token that holds, asked for with one request if there is none. Without one, it returns how the call that
   * needed it ends: none of its bytes was sent, or, if the key was refused, as after a 401.
   */
  async current({ signal, timeoutMs }: TokenWait): Promise<string | ProviderEnd> {
    this.#readFile();
    if (this.#held !== null && Date.now() < this.#held.renewAtMs) return this.#held.token;
    const form = Buffer.from(tokenForm(this.#account, this.#scope, Math.floor(Date.now() / 1_000)));
    const { origin, pathname, search } = new URL(this.#account.tokenUri);
    const end = await this.#httpTo(origin).send({
      method: 'POST',
      path: `${pathname}${search}`,
      headers: ['content-type', 'application/x-www-form-urlencoded'],
      body: { bytes: form.length, open: () => Readable.from([form]) },
      timeoutMs,
      signal,
    });
    return this.#taken(end);
  }

  /** Drops a token that was refused, so that the next call asks for another one. */
  forget(token: string): void {
    if (this.#held?.token === token) this.#held = null;
  }

  /** A text without the keys and tokens that this process has used. */
  mask(text: string): string {
    return [...this.#keys, ...this.#tokens].reduce(
      (masked, secret) => masked.replaceAll(secret, MASK),
      text,
    );
  }

  async close(): Promise<void> {
    await Promise.all([...this.#https.values()].map((http) => http.close()));
  }

  #taken(end: ProviderEnd): string | ProviderEnd {
    if (end.kind === 'failure') return { ...end, mayBeSent: false };
    const issued = end.status >= 200 && end.status < 300 ? readToken(end.json) : null;
    if (issued === null) return endWithoutToken(end.status, end.json);
    const { token, lifetimeMs } = issued;
    const early = Math.min(RENEW_BEFORE_MS, lifetimeMs / 2);
    this.#held = { token, renewAtMs: Date.now() + lifetimeMs - early };
    remember(this.#tokens, [token]);
    return token;
  }

  #readFile(): void {
    try {
      const text = readCredentials(this.#file);
      if (text === this.#text) return;
      this.#account = parseServiceAccount(text, this.#file);
      this.#text = text;
    } catch {
      return;
    }
    this.#held = null;
    remember(this.#keys, this.#account.secrets);
  }

  #httpTo(origin: string): ProviderHttp {
    const known = this.#https.get(origin);
    if (known !== undefined) return known;
    const http = openProviderHttp({ ...this.#connection, url: origin, authorize: () => [] });
    this.#https.set(origin, http);
    return http;
  }
}

function remember(secrets: string[], more: readonly string[]): void {
  secrets.push(...more);
  secrets.splice(0, secrets.length - MAX_MASKED);
}

/** The end of a call for which there was no token. A 3xx or 4xx refuses key or address; anything else may pass. */
function endWithoutToken(status: number, json: unknown): ProviderEnd {
  const { error, error_description: text } = isJsonObject(json) ? json : {};
  const word = typeof error === 'string' ? error : 'no_token';
  const said = typeof text === 'string' ? `: ${text}` : '';
  const message = `the token endpoint answered ${status} ${word}${said}`;
  const isRefused = status >= 300 && status < 500 && status !== 408 && status !== 429;
  if (!isRefused) {
    return { kind: 'failure', reason: 'connect', message, mayBeSent: false };
  }
  const rpc = { code: 401, status: 'UNAUTHENTICATED', message };
  return { kind: 'answer', status: 401, json: { error: rpc }, retryAfterMs: null };
}
