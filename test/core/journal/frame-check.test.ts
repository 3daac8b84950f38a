import { crc32 } from 'node:zlib';
import { checkedEnd, encodeFrame, FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { NO_USAGE } from '../../../core/batch/counts';

/** A frame whose bytes are changed and whose checksum agrees: as a later version would write it. */
function foreign(change: (frame: Buffer) => void): Buffer {
  const fields = { offset: 5, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  const frame = encodeFrame(fields, Buffer.from('answer'), crc32);
  change(frame);
  frame.writeUInt32LE(crc32(frame.subarray(8)), 4);
  return frame;
}

test.each<[string, (frame: Buffer) => void]>([
  ['of a kind that is not known', (frame) => frame.writeUInt8(4, 16)],
  ['of kind 0', (frame) => frame.writeUInt8(0, 16)],
  ['whose offset is no safe integer', (frame) => frame.writeUInt32LE(2 ** 21, 12)],
])('a frame %s is not taken for an answer, by neither reader', (_what, change) => {
  const frame = foreign(change);
  expect(checkedEnd(frame, 0, crc32)).toBeNull();
  expect(readFrame(frame, 0, crc32)).toBeNull();
});

test('both readers find the same end of a whole frame', () => {
  const frame = foreign(() => undefined);
  expect(checkedEnd(frame, 0, crc32)).toBe(frame.length);
  expect(readFrame(frame, 0, crc32)?.end).toBe(frame.length);
});
