'use strict';

/** Recordings and the forms that carry them. */
const { createHash } = require('node:crypto');

const RATE_HZ = 16_000;
const HEADER_BYTES = 44;
const BOUNDARY = 'bench-boundary-7d1f';

/** The header of a WAV file of 16-bit mono samples, `bytes` long with its samples. */
function wavHeader(bytes) {
  const header = Buffer.alloc(HEADER_BYTES);
  const samples = bytes - HEADER_BYTES;
  header.write('RIFF', 0);
  header.writeUInt32LE(bytes - 8, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(RATE_HZ, 24);
  header.writeUInt32LE(RATE_HZ * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(samples, 40);
  return header;
}

/** A WAV file of `bytes` bytes. Files with different `seed` differ. */
function recording(bytes, seed = 0) {
  const file = Buffer.alloc(bytes);
  wavHeader(bytes).copy(file);
  fill(file, { from: HEADER_BYTES, seed });
  return file;
}

/** Noise from a linear congruence, the same on every machine. */
function fill(bytes, { from, seed }) {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  for (let at = from; at < bytes.length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
}

/** Seconds of audio in a WAV file of {@link recording}. */
function secondsOf(bytes) {
  return (bytes - HEADER_BYTES) / (RATE_HZ * 2);
}

/**
 * The form of a transcription.
 *
 * @param {Buffer} file
 * @param {Record<string, string>} fields in addition to the file
 */
function formOf(file, fields) {
  const { head, tail } = formAround(fields);
  return Buffer.concat([head, file, tail]);
}

/** What comes before and after the bytes of the file in its form. */
function formAround(fields) {
  const parts = Object.entries(fields).map(
    ([name, value]) =>
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const file = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`;
  return {
    head: Buffer.from(`${parts.join('')}${file}`),
    tail: Buffer.from(`\r\n--${BOUNDARY}--\r\n`),
  };
}

const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

/** A large recording that is not kept in memory: a part of its own, then the same block again and again. */
class LargeRecording {
  #block = Buffer.alloc(64 * 1024);
  #bytes;
  #first;

  constructor(bytes, seed) {
    this.#bytes = bytes;
    this.#first = Buffer.concat([wavHeader(bytes), Buffer.from(`recording ${seed} `)]);
    fill(this.#block, { from: 0, seed: 1 });
  }

  get size() {
    return this.#bytes;
  }

  *pieces() {
    yield this.#first;
    let left = this.#bytes - this.#first.length;
    for (; left > 0; left -= this.#block.length) {
      yield left < this.#block.length ? this.#block.subarray(0, left) : this.#block;
    }
  }

  /** SHA-256 of all bytes, in hexadecimal digits. */
  digest() {
    const hash = createHash('sha256');
    for (const piece of this.pieces()) hash.update(piece);
    return hash.digest('hex');
  }
}

module.exports = { FORM_TYPE, formAround, formOf, LargeRecording, RATE_HZ, recording, secondsOf };
