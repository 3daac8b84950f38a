import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { encodeFrame, FRAME_KIND } from '../../../core/journal/frame';
import {
  decodeSealTrailer,
  encodeSealEnd,
  encodeSealHeader,
  SEAL_TRAILER_BYTES,
} from '../../../core/journal/seal';
import { decodeSealIndex } from '../../support/seal-index';
import { NO_USAGE } from '../../../core/batch/counts';

function sealOf(offsets: readonly number[]): Buffer {
  const parts = [encodeSealHeader()];
  const index = [];
  let position = 16;
  for (const offset of offsets) {
    const fields = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
    const frame = encodeFrame(fields, Buffer.from(`line ${offset}`), crc32);
    index.push({ offset, position });
    parts.push(frame);
    position += frame.length;
  }
  return Buffer.concat([
    ...parts,
    encodeSealEnd(index, { count: index.length, indexPosition: position }, crc32),
  ]);
}

it('finds every frame of a seal through trailer and index', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.maxSafeNat(), { maxLength: 20 }), (offsets) => {
      const seal = sealOf(offsets);
      expect(seal.subarray(0, 4).toString()).toBe('NSS1');
      const trailer = decodeSealTrailer(seal, seal.length);
      expect(trailer.frameCount).toBe(offsets.length);
      const indexBytes = seal.subarray(trailer.indexPosition, seal.length - SEAL_TRAILER_BYTES);
      const index = decodeSealIndex(indexBytes, trailer);
      expect(index.map((entry) => entry.offset)).toEqual(offsets);
      for (const { offset, position } of index) {
        expect(seal.subarray(position + 44).toString()).toMatch(new RegExp(`^line ${offset}`));
      }
    }),
  );
});

it('reports a truncated or extended seal as object_corrupt', () => {
  const seal = sealOf([1, 5, 9]);
  for (let size = 0; size < seal.length; size++) {
    expect(() => decodeSealTrailer(seal.subarray(0, size), size)).toThrow(
      expect.objectContaining({ code: 'object_corrupt' }),
    );
  }
  expect(() => decodeSealTrailer(seal, seal.length + 1)).toThrow('not a complete seal');
});

it('reports a damaged seal index as object_corrupt', () => {
  const seal = sealOf([1, 5, 9]);
  const trailer = decodeSealTrailer(seal, seal.length);
  const index = Buffer.from(seal.subarray(trailer.indexPosition, -SEAL_TRAILER_BYTES));
  index.writeUInt8(index.readUInt8(3) ^ 1, 3);
  expect(() => decodeSealIndex(index, trailer)).toThrow('index of the seal is damaged');
  expect(() => decodeSealIndex(index.subarray(16), trailer)).toThrow(
    'index of the seal is cut off',
  );
});
