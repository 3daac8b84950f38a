import { fnv32a } from '../names/fnv';
import { BACKSLASH, QUOTE } from './json-bytes';
import { contentText } from './system-prompt';

const MAX_KNOWN = 512;
const MAX_REMEMBERED = 16 * 1024;
const NEAR_BYTES = 100;

/** A content of which the hash is known. */
interface KnownContent {
  readonly json: Buffer;
  readonly hash: number;
}

/**
 * Computes the same hashes as `createPrefixHasher`, for contents that have not been parsed. It caches up to 512 contents, of at
 * most 16 KiB each, with their hashes: comparing bytes is faster than decoding them.
 *
 * A class, because code that was compiled for the function of one scan is not that for the function of the next one.
 */
export class ContentHasher {
  readonly #known = new Map<number, KnownContent>();

  /**
   * The hash of the JSON text `[start, end)` of `bytes`: the content of a message, a string or an array. Equal texts have
   * equal digests; the more these differ between other texts, the better.
   */
  hash(bytes: Buffer, [start, end]: readonly [number, number], digest: number): number {
    const known = this.#known;
    const found = known.get(digest);
    if (found !== undefined && isAt(bytes, [start, end], found.json)) return found.hash;
    const json = bytes.subarray(start, end);
    const hash = fnv32a(textBytes(json));
    if (json.length <= MAX_REMEMBERED) {
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(digest, { json: Buffer.from(json), hash });
    }
    return hash;
  }
}

/** Whether `[start, end)` of `bytes` are `json`. A native comparison costs as much as a loop over a hundred bytes. */
function isAt(bytes: Buffer, [start, end]: readonly [number, number], json: Buffer): boolean {
  if (end - start !== json.length) return false;
  if (json.length > NEAR_BYTES) return bytes.compare(json, 0, json.length, start, end) === 0;
  for (let i = 0; i < json.length; i++) if (bytes[start + i] !== json[i]) return false;
  return true;
}

/** The text of a content, as UTF-8. */
function textBytes(json: Buffer): Buffer {
  if (json[0] === QUOTE && !json.includes(BACKSLASH)) return json.subarray(1, -1);
  return Buffer.from(contentText(JSON.parse(json.toString())) ?? '');
}
