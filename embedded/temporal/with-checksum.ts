import { createHash } from 'node:crypto';
import { pipeline, Transform, type Readable } from 'node:stream';
import { NightshiftError } from '../../core/errors';

/**
 * The same bytes, followed by an error instead of the end if their SHA-256 is not `expected`. A reader that
 * uses nothing before the end therefore uses nothing that was changed on its way.
 */
export function withChecksum(source: Readable, expected: string): Readable {
  const hash = createHash('sha256');
  const checked = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      hash.update(chunk);
      callback(null, chunk);
    },
    flush(callback) {
      const found = hash.digest('hex');
      const message = `the SHA-256 of the archive is ${found}, not ${expected}`;
      callback(found === expected ? null : new NightshiftError('unavailable', message));
    },
  });
  // An error of the source ends the result, so the reader gets it.
  pipeline(source, checked, () => undefined);
  return checked;
}
