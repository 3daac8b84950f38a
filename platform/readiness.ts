import { within } from './within';

/** Checks one dependency; rejects with an error if it fails. */
export type ReadinessCheck = () => Promise<void>;

/** `ok`, or the message of the error. Waits at most `timeoutMs`. */
export function tryCheck(check: ReadinessCheck, timeoutMs: number): Promise<string> {
  const checked = check().then(() => 'ok', messageOf);
  return within(timeoutMs, checked, () => `no answer within ${timeoutMs} ms`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
