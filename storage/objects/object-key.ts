import { NightshiftError } from '../../core/errors';

const KEY = /^[A-Za-z0-9._-]+(?:\/[A-Za-z0-9._-]+)*$/;
const PREFIX = /^(?:[A-Za-z0-9._-]+\/)*[A-Za-z0-9._-]*$/;

/**
 * The key itself. @throws internal for a text that is not slash-separated names of `[A-Za-z0-9._-]`, or
 * that has `.` or `..` among them: keys can be paths
 */
export function requireKey(key: string): string {
  if (!KEY.test(key) || hasDots(key)) throw notAKey(key);
  return key;
}

/** The prefix itself: everything in folder `a/b/` that begins with `c`. @throws internal if no key has it */
export function requirePrefix(prefix: string): string {
  if (!PREFIX.test(prefix) || hasDots(prefix.slice(0, prefix.lastIndexOf('/') + 1))) {
    throw notAKey(prefix);
  }
  return prefix;
}

function hasDots(path: string): boolean {
  return path.split('/').some((name) => name === '.' || name === '..');
}

function notAKey(text: string): NightshiftError {
  return new NightshiftError('internal', `not an object key: ${JSON.stringify(text)}`);
}
