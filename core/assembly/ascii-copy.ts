/**
 * Copies JSON and makes it ASCII on the way, as core/openai/ascii-json.ts does: without blanks outside strings, and with
 * escapes for characters beyond ASCII. The text must be whole JSON, apart from its encoding, which is checked here.
 */
import { BACKSLASH, byteAt, FAIL, QUOTE } from './answer-values';

const SPACE: u32 = 0x20;
const LAST_ASCII: u32 = 0x7f;
/** The characters `\u`, lower byte first. */
const ESCAPE: u64 = 0x755c;
const ESCAPE_BYTES: usize = 6;
/** First code point that UTF-16 writes as two surrogates. */
const BEYOND_16_BITS: u32 = 0x10000;

/** Where the next byte of the copy goes. */
let target: usize = 0;

/** Copies `[start, end)` to `to`, where it takes up to three times as many bytes and 16 more. FAIL if it is not UTF-8. */
export function asciiCopyEnd(start: usize, end: usize, to: usize): usize {
  target = to;
  let at = start;
  while (at < end) {
    const byte = byteAt(at);
    if (byte === QUOTE) {
      at = copyString(at);
      if (at === FAIL) return FAIL;
    } else {
      if (byte > SPACE) store<u8>(target++, <u8>byte);
      at++;
    }
  }
  return target;
}

/** Copies 16 bytes at a time, and goes on behind those that may stay as they are. */
function copyString(open: usize): usize {
  const quotes = i8x16.splat(<i8>QUOTE);
  const slashes = i8x16.splat(<i8>BACKSLASH);
  let out = target;
  store<u8>(out++, <u8>QUOTE);
  let at = open + 1;
  while (true) {
    const block = v128.load(at);
    v128.store(out, block);
    const ends = v128.or(i8x16.eq(block, quotes), i8x16.eq(block, slashes));
    // The sign bit of a byte is set beyond ASCII.
    const found = i8x16.bitmask(v128.or(ends, block));
    if (found === 0) {
      at += 16;
      out += 16;
      continue;
    }
    const plain = <usize>ctz(found);
    at += plain;
    out += plain;
    const byte = byteAt(at);
    if (byte === QUOTE) break;
    if (byte === BACKSLASH) {
      store<u16>(out, load<u16>(at));
      at += 2;
      out += 2;
    } else {
      at = escapeAll(at, out);
      if (at === FAIL) return FAIL;
      out = target;
    }
  }
  target = out + 1;
  return at + 1;
}

/** Writes escapes for characters up to the next one that is ASCII. */
function escapeAll(from: usize, to: usize): usize {
  let at = from;
  let out = to;
  for (let first = byteAt(at); first > LAST_ASCII; first = byteAt(at)) {
    // After the last byte of the text are zeros.
    const word = load<u32>(at);
    if (first < 0xe0) {
      out = escapeTwoBytes(word, out);
      at += 2;
    } else if (first < 0xf0) {
      out = escapeThreeBytes(word, out);
      at += 3;
    } else {
      out = escapeFourBytes(word, out);
      at += 4;
    }
    if (out === FAIL) return FAIL;
  }
  target = out;
  return at;
}

/** The character whose bytes are in `word`, the first one lowest. Each function of these fails if they are not UTF-8. */
function escapeTwoBytes(word: u32, out: usize): usize {
  if ((word & 0xc0e0) !== 0x80c0 || (word & 0x1e) === 0) return FAIL;
  return writeEscape(((word & 0x1f) << 6) | ((word >>> 8) & 0x3f), out);
}

/** Fails for a character of fewer bytes, and for a surrogate. */
function escapeThreeBytes(word: u32, out: usize): usize {
  const unit = ((word & 0x0f) << 12) | ((word >>> 2) & 0xfc0) | ((word >>> 16) & 0x3f);
  if ((word & 0xc0c0f0) !== 0x8080e0 || unit < 0x800 || unit >>> 11 === 0x1b) return FAIL;
  return writeEscape(unit, out);
}

function escapeFourBytes(word: u32, out: usize): usize {
  const upper = ((word & 0x07) << 18) | ((word << 4) & 0x3f000);
  const beyond = (upper | ((word >>> 10) & 0xfc0) | ((word >>> 24) & 0x3f)) - BEYOND_16_BITS;
  if ((word & 0xc0c0c0f8) !== 0x808080f0 || beyond > 0xfffff) return FAIL;
  return writeEscape(0xdc00 | (beyond & 0x3ff), writeEscape(0xd800 | (beyond >>> 10), out));
}

/** Makes four digits at once, one in each byte: `0` to `9` or `a` to `f`. */
function writeEscape(unit: u32, out: usize): usize {
  const digits =
    (((unit >>> 8) & 0xf) << 8) |
    (unit >>> 12) |
    (((unit >>> 4) & 0xf) << 16) |
    ((unit & 0xf) << 24);
  const letters = ((digits + 0x06060606) >>> 4) & 0x01010101;
  const text = digits + 0x30303030 + letters * 39;
  store<u64>(out, ESCAPE | ((<u64>text) << 16));
  return out + ESCAPE_BYTES;
}
