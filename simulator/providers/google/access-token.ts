import type { IncomingHttpHeaders } from 'node:http';
import { randomUUID } from 'node:crypto';

const PREFIX = 'ya29.simulated';
const BEARER = new RegExp(`^Bearer ${PREFIX.replace('.', '\\.')}\\.(.+)\\.[^.]+$`, 'i');

/** A new access token. It names the key that it was issued for. */
export function issueToken(keyId: string): string {
  return `${PREFIX}.${keyId}.${randomUUID()}`;
}

/** The id of the key that the token of a request was issued for; empty without a token. */
export function tokenKeyOf({ authorization = '' }: IncomingHttpHeaders): string {
  return BEARER.exec(authorization)?.[1] ?? '';
}
