import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { NO_USAGE } from '../../../core/batch/counts';
import { crc32Joined, crc32WithBytes } from '../../../core/journal/crc32-join';
import { encodeFrame, encodeRetryFrame, FRAME_KIND } from '../../../core/journal/frame';
import { soundSpan } from '../../../core/journal/frame-span';

function frame(offset: number, payload: Uint8Array = Buffer.from(`answer ${offset}`)): Buffer {
  const kind = offset % 3 === 0 ? FRAME_KIND.error : FRAME_KIND.output;
  return encodeFrame({ offset, kind, status: 200, tries: 1, usage: NO_USAGE }, payload, crc32);
}

const FRAMES = [1, 2, 3, 2 ** 40].map((offset) => frame(offset));
const SPAN = Buffer.concat(FRAMES);

describe('joined checksums', () => {
  it('are those of the joined bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array({ maxLength: 300 }), (one, other) => {
        const joined = crc32Joined(crc32(one), crc32(other), other.length);
        const whole = crc32(Buffer.concat([one, other]));
        expect(joined >>> 0).toBe(whole);
        expect(crc32WithBytes(crc32(one), other, 0, other.length) >>> 0).toBe(whole);
      }),
    );
  });

  it.each([0, 1, 8191, 8192, 8193, 16_383, 16_384, 100_000, 3 * 1024 * 1024 + 5])(
    'are right for %i bytes',
    (length) => {
      const [one, other] = [Buffer.from('begin'), Buffer.alloc(length, 'end')];
      const joined = crc32Joined(crc32(one), crc32(other), length);
      expect(joined >>> 0).toBe(crc32(Buffer.concat([one, other])));
    },
  );
});

describe('a span of frames', () => {
  it('ends behind the last whole frame', () => {
    const last = FRAMES.at(-1)!;
    expect(soundSpan(SPAN, -1, crc32)).toEqual({ end: SPAN.length, lastOffset: 2 ** 40 });
    for (const cut of [1, last.length - 44, last.length - 1]) {
      const end = SPAN.length - last.length;
      const found = soundSpan(SPAN.subarray(0, SPAN.length - cut), -1, crc32);
      expect(found).toEqual({ end, lastOffset: 3 });
    }
  });

  it('has frames of any size', () => {
    const sizes = [0, 1, 8_147, 8_148, 8_149, 70_000];
    const bytes = Buffer.concat(sizes.map((size, i) => frame(i + 1, Buffer.alloc(size, 'x'))));
    const expected = { end: bytes.length, lastOffset: sizes.length };
    expect(soundSpan(bytes, 0, crc32)).toEqual(expected);
  });

  it('is not sound if any bit of it is wrong', () => {
    for (let bit = 0; bit < 8 * SPAN.length; bit++) {
      const damaged = Buffer.from(SPAN);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      // A wrong length can make the frames before it the whole span.
      const found = soundSpan(damaged, -1, crc32);
      expect([bit, found === null || found.end <= bit >> 3]).toEqual([bit, true]);
    }
  });

  it('is not sound if several bytes are wrong', () => {
    const damage = fc.tuple(fc.nat(SPAN.length - 1), fc.integer({ min: 1, max: 255 }));
    fc.assert(
      fc.property(fc.array(damage, { minLength: 2, maxLength: 40 }), (damages) => {
        const damaged = Buffer.from(SPAN);
        for (const [at, bits] of damages) damaged[at]! ^= bits;
        fc.pre(!damaged.equals(SPAN));
        const found = soundSpan(damaged, -1, crc32);
        const isIntact =
          found !== null && damaged.subarray(0, found.end).equals(SPAN.subarray(0, found.end));
        expect(found === null || isIntact).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each<[string, Buffer[]]>([
    ['no frame', []],
    ['a cut frame', [frame(1).subarray(0, 45)]],
    ['zeros', [frame(1), Buffer.alloc(88)]],
    ['frames out of order', [frame(2), frame(1)]],
    ['the same offset twice', [frame(2), frame(2)]],
    ['a retry frame', [encodeRetryFrame({ offset: 1, tries: 1, notBeforeMs: 0 }, crc32)]],
  ])('does not have %s', (_what, frames) => {
    expect(soundSpan(Buffer.concat(frames), -1, crc32)).toBeNull();
  });

  it('begins after the frames before it', () => {
    expect(soundSpan(SPAN, 0, crc32)).not.toBeNull();
    expect(soundSpan(SPAN, 1, crc32)).toBeNull();
  });
});
