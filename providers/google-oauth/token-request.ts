import { sign } from 'node:crypto';
import { isJsonObject } from '../../core/openai/json-object';
import type { ServiceAccount } from './service-account';

/** Google's longest lifetime of an assertion, s. */
const LIFETIME_SEC = 3_600;
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** An access token, and for how long it holds. */
export interface IssuedToken {
  readonly token: string;
  readonly lifetimeMs: number;
}

/**
 * The form that asks for an access token: a JWT that the service account signs with RS256 (RFC 7523,
 * https://developers.google.com/identity/protocols/oauth2/service-account#httprest).
 */
export function tokenForm(account: ServiceAccount, scope: string, nowSec: number): string {
  const header = { alg: 'RS256', typ: 'JWT', kid: account.privateKeyId };
  const claims = {
    iss: account.clientEmail,
    scope,
    aud: account.tokenUri,
    iat: nowSec,
    exp: nowSec + LIFETIME_SEC,
  };
  const signed = `${encoded(header)}.${encoded(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), account.privateKey).toString('base64url');
  const assertion = `${signed}.${signature}`;
  return new URLSearchParams({ grant_type: GRANT, assertion }).toString();
}

/** Reads the answer of a token endpoint; null if it has no token. */
export function readToken(json: unknown): IssuedToken | null {
  if (!isJsonObject(json)) return null;
  const { access_token: token, expires_in: seconds } = json;
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) return null;
  const lifetimeSec = typeof seconds === 'number' && seconds > 0 ? seconds : 0;
  return { token, lifetimeMs: lifetimeSec * 1_000 };
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
