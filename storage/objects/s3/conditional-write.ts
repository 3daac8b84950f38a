import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { NightshiftError } from '../../../core/errors';
import type { PutResult } from '../../object-store';
import { lookUp } from './look-up';
import type { S3Bucket } from './s3-bucket';
import { hasName, s3Error, statusOf } from './s3-errors';

const TRIES = 6;
const FIRST_WAIT_MS = 50;

/** An object that is to be created, and the id of this attempt, which its metadata carry. */
export interface NewObject {
  readonly key: string;
  readonly writer: string;
}

/** A new object with an id of its own: no other attempt at any key has the same. */
export function newObject(key: string): NewObject {
  return { key, writer: randomBytes(8).toString('hex') };
}

/**
 * Makes a write with `If-None-Match: *` and tells how it went.
 *
 * S3 answers 412 if the key exists. But if an answer was lost, the SDK has sent the write again, and the
 * object that exists may be the one of the first try. The same holds for a missing upload when a multipart
 * upload is completed: the first try has completed it. So the writer in the object's metadata decides
 * between `created` and `exists`. A conflict (409) means that another write or delete of the key was not
 * finished; the write is made again (docs/design/journal.md#objects-in-s3).
 *
 * @throws object_store_failed; the object may exist nevertheless, and is whole then
 */
export async function writeIfAbsent(
  bucket: S3Bucket,
  { key, writer }: NewObject,
  write: () => Promise<unknown>,
): Promise<PutResult> {
  const action = `write ${key}`;
  for (let tries = 1; ; tries++) {
    try {
      await write();
      return 'created';
    } catch (error) {
      const outcome = outcomeOf(error);
      if (outcome === 'failed') throw s3Error(error, action, bucket);
      if (outcome !== 'conflict') {
        const found = await lookUp(bucket, key);
        if (found !== null) return found.writer === writer ? 'created' : 'exists';
        if (outcome === 'upload gone') throw uploadGone(action, error);
      }
      if (tries === TRIES) throw s3Error(error, action, bucket);
      bucket.onRetry('store');
      await delay(FIRST_WAIT_MS * 2 ** tries * (0.5 + Math.random()));
    }
  }
}

/** `taken`: the key exists, or did a moment ago. */
function outcomeOf(error: unknown): 'taken' | 'conflict' | 'upload gone' | 'failed' {
  if (statusOf(error) === 412) return 'taken';
  if (hasName(error, 'ConditionalRequestConflict', 'OperationAborted')) return 'conflict';
  return hasName(error, 'NoSuchUpload') ? 'upload gone' : 'failed';
}

function uploadGone(action: string, cause: unknown): NightshiftError {
  const message = `${action}: its unfinished upload was removed. Rules of the bucket must not remove uploads younger than a day.`;
  return new NightshiftError('object_store_failed', message, { cause });
}
