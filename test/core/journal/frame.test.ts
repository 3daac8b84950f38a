import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { NO_USAGE } from '../../../core/batch/counts';
import {
  encodeFrame,
  encodeRetryFrame,
  FRAME_HEADER_BYTES,
  FRAME_KIND,
  frameModelTag,
  frameOffset,
  isUsageClamped,
  readFrame,
  readNotBeforeMs,
} from '../../../core/journal/frame';
import { encodeObjectHeader, hasObjectHeader, MAGIC } from '../../../core/journal/magic';
import { framesOfSegment } from '../../support/segment-frames';

const u32 = fc.integer({ min: 0, max: 0xffffffff });
const usage = fc.record({
  inputTokens: u32,
  cachedTokens: u32,
  outputTokens: u32,
  reasoningTokens: u32,
  totalTokens: u32,
});
const header = fc.record({
  offset: fc.maxSafeNat(),
  kind: fc.constantFrom(FRAME_KIND.output, FRAME_KIND.error),
  status: fc.integer({ min: 0, max: 999 }),
  tries: fc.integer({ min: 0, max: 0xffff }),
  usage,
});
const payload = fc.uint8Array({ maxLength: 300 });

/** CRC-32 bit by bit, as IEEE 802.3 defines it: a reference for the implementation in use. */
function referenceCrc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return ~crc >>> 0;
}

it('stores the CRC-32 (IEEE 802.3) of everything after the checksum field', () => {
  expect(referenceCrc32(Buffer.from('123456789'))).toBe(0xcbf43926);
  fc.assert(
    fc.property(header, payload, (fields, body) => {
      const frame = encodeFrame(fields, body, crc32);
      expect(frame.readUInt32LE(4)).toBe(referenceCrc32(frame.subarray(8)));
    }),
  );
});

it('writes a frame in the documented byte layout', () => {
  const frame = encodeFrame(
    {
      offset: 0x1_0203_0405,
      kind: FRAME_KIND.output,
      status: 200,
      tries: 2,
      usage: {
        inputTokens: 1,
        cachedTokens: 2,
        outputTokens: 3,
        reasoningTokens: 4,
        totalTokens: 5,
      },
    },
    Buffer.from('hi'),
    crc32,
  );
  expect(frame.toString('hex')).toBe(
    '02000000' + // payload length
      'f1644819' + // CRC-32
      '0504030201000000' + // offset
      '01' + // kind
      '00' + // flags
      'c800' + // status
      '0200' + // tries
      '0000' + // reserved
      '0100000002000000030000000400000005000000' + // usage
      '6869',
  );
});

it('reads back every frame that it wrote', () => {
  fc.assert(
    fc.property(header, payload, fc.nat(20), (fields, body, shift) => {
      const bytes = Buffer.concat([Buffer.alloc(shift, 7), encodeFrame(fields, body, crc32)]);
      const frame = readFrame(bytes, shift, crc32);
      expect(frame).toEqual({
        header: { ...fields, payloadLength: body.length },
        payloadStart: shift + FRAME_HEADER_BYTES,
        end: bytes.length,
      });
      expect(frameOffset(bytes, shift)).toBe(fields.offset);
      expect(bytes.subarray(frame!.payloadStart, frame!.end)).toEqual(Buffer.from(body));
    }),
  );
});

it('stores the model tag in two bytes of its own', () => {
  fc.assert(
    fc.property(header, payload, fc.nat(0xffff), (fields, body, modelTag) => {
      const bytes = encodeFrame({ ...fields, modelTag }, body, crc32);
      expect(frameModelTag(bytes, 0)).toBe(modelTag);
      expect(frameModelTag(encodeFrame(fields, body, crc32), 0)).toBe(0);
      expect(readFrame(bytes, 0, crc32)?.header).toEqual({ ...fields, payloadLength: body.length });
    }),
  );
});

it('stores tries, refusals and not-before time in a retry frame', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.nat(0xffff), fc.maxSafeNat(), (offset, tries, notBeforeMs) => {
      const bytes = encodeRetryFrame({ offset, tries, notBeforeMs }, crc32);
      const frame = readFrame(bytes, 0, crc32);
      expect(frame?.header).toMatchObject({ offset, tries, kind: FRAME_KIND.retry });
      expect(readNotBeforeMs(bytes, frame!)).toBe(notBeforeMs);
    }),
  );
});

it('clamps absurd token counts to the size of their fields', () => {
  const wild = {
    inputTokens: 2 ** 40,
    cachedTokens: -5,
    outputTokens: Number.NaN,
    reasoningTokens: 1.9,
    totalTokens: Number.POSITIVE_INFINITY,
  };
  const fields = { offset: 1, kind: FRAME_KIND.error, status: 70_000, tries: 70_000, usage: wild };
  expect(readFrame(encodeFrame(fields, Buffer.alloc(0), crc32), 0, crc32)?.header).toMatchObject({
    status: 65_535,
    tries: 65_535,
    usage: {
      inputTokens: 0xffffffff,
      cachedTokens: 0,
      outputTokens: 0,
      reasoningTokens: 1,
      totalTokens: 0xffffffff,
    },
  });
});

it('flags a frame whose counts were clamped, and no other', () => {
  const flagOf = (inputTokens: number): [number | undefined, boolean] => {
    const usage = { ...NO_USAGE, inputTokens };
    const fields = { offset: 1, kind: FRAME_KIND.output, status: 200, tries: 1, usage };
    const frame = encodeFrame(fields, Buffer.from('x'), crc32);
    expect(readFrame(frame, 0, crc32)?.header.usage.inputTokens).toBe(
      Math.min(inputTokens, 0xffffffff),
    );
    return [frame[17], isUsageClamped(frame, 0)];
  };
  expect(flagOf(0xffffffff)).toEqual([0, false]);
  expect(flagOf(2 ** 32)).toEqual([1, true]);
});

it('does not read a frame that is cut at any byte', () => {
  fc.assert(
    fc.property(header, payload, fc.nat(), (fields, body, at) => {
      const bytes = encodeFrame(fields, body, crc32);
      expect(readFrame(bytes.subarray(0, at % bytes.length), 0, crc32)).toBeNull();
    }),
  );
});

it('does not read a frame with any flipped bit', () => {
  fc.assert(
    fc.property(header, payload, fc.nat(), (fields, body, at) => {
      const bytes = Buffer.concat([encodeFrame(fields, body, crc32), Buffer.alloc(64, 1)]);
      const bit = at % ((FRAME_HEADER_BYTES + body.length) * 8);
      bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(readFrame(bytes, 0, crc32)).toBeNull();
    }),
  );
});

it('does not read zeros, as left by power loss, as a frame', () => {
  expect(readFrame(Buffer.alloc(4096), 0, crc32)).toBeNull();
});

it('reads the frames of a segment up to the first damaged one', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(header, payload), { minLength: 1, maxLength: 8 }),
      fc.nat(),
      fc.boolean(),
      (frames, at, cut) => {
        const encoded = frames.map(([fields, body]) => encodeFrame(fields, body, crc32));
        const whole = Buffer.concat([encodeObjectHeader(MAGIC.segment), ...encoded]);
        expect([...framesOfSegment(whole)].map((f) => f.header.offset)).toEqual(
          frames.map(([fields]) => fields.offset),
        );
        const damaged = at % whole.length;
        if (!cut) whole.writeUInt8(whole.readUInt8(damaged) ^ 0x40, damaged);
        const bytes = cut ? whole.subarray(0, damaged) : whole;
        expect([...framesOfSegment(bytes)]).toHaveLength(framesBefore(encoded, damaged));
      },
    ),
  );
});

it('reads no frames from an object of another kind or version', () => {
  expect(hasObjectHeader(encodeObjectHeader(MAGIC.seal), MAGIC.segment)).toBe(false);
  const newer = encodeObjectHeader(MAGIC.segment);
  newer.writeUInt16LE(2, 4);
  expect(hasObjectHeader(newer, MAGIC.segment)).toBe(false);
  expect([...framesOfSegment(Buffer.alloc(0))]).toEqual([]);
});

function framesBefore(encoded: readonly Buffer[], damagedByte: number): number {
  let end = 16;
  if (damagedByte < end) return 0;
  let count = 0;
  for (const frame of encoded) {
    end += frame.length;
    if (damagedByte < end) break;
    count++;
  }
  return count;
}
