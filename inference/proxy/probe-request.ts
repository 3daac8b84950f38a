import { HttpAttempt, type AttemptFailure } from '../../platform/http-client/attempt';
import type { ConnectionPool } from '../../platform/http-client/pool';

/** A page that a backend answers with, or why there is none. */
export type ProbeAnswer =
  | { readonly kind: 'page'; readonly status: number; readonly text: string }
  | ({ readonly kind: 'failure' } & AttemptFailure);

/** One GET. */
export interface ProbeRequest {
  readonly path: string;
  /** Value of `authorization`, or null. */
  readonly authorization: string | null;
  /** Time limit to the last byte, ms. */
  readonly timeoutMs: number;
}

/** The metrics of an engine take some 100 KiB. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

/** A small GET: `send` it once; `abort` ends it early. `onEnd` is called once. */
export function probeRequest(
  { path, authorization, timeoutMs }: ProbeRequest,
  onEnd: (answer: ProbeAnswer) => void,
): { send(pool: ConnectionPool): void; abort(): void } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let status = 0;
  const reader = {
    onHead: (given: number) => void (status = given),
    onBytes: (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > MAX_PAGE_BYTES) attempt.fail('too_large', `${path} is too long`);
    },
    onEnd: () => {
      attempt.finish();
      onEnd({ kind: 'page', status, text: Buffer.concat(chunks).toString('utf8') });
    },
    onFailure: (failure: AttemptFailure) => onEnd({ kind: 'failure', ...failure }),
  };
  const attempt = new HttpAttempt({ timeoutMs, reader });
  const headers = authorization === null ? [] : ['authorization', authorization];
  return {
    send: (pool) => void pool.dispatch({ method: 'GET', path, headers }, attempt),
    abort: () => attempt.abort(),
  };
}
