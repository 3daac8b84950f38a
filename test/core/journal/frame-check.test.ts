import { crc32 } from 'node:zlib';
import { checkedEnd, encodeFrame, FRAME_KIND, readFrame } from '../../../core/journal/frame';
import { NO_USAGE } from '../../../core/batch/counts';

/** A frame with changed bytes and a matching checksum, as a later version might write it. */
function foreign(change: (frame: Buffer) => void): Buffer {
  const fields = { offset: 5, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  const frame = encodeFrame(fields, Buffer.from('answer'), crc32);
  change(frame);
  frame.writeUInt32LE(crc32(frame.subarray(8)), 4);
  return frame;
}

it.each<[string, (frame: Buffer) => void]>([
  ['of an unknown kind', (frame) => frame.writeUInt8(4, 16)],
  ['of kind 0', (frame) => frame.writeUInt8(0, 16)],
  ['with an offset that is not a safe integer', (frame) => frame.writeUInt32LE(2 ** 21, 12)],
])('treats a frame %s as damaged, in both readers', (_what, change) => {
  const frame = foreign(change);
  expect(checkedEnd(frame, 0, crc32)).toBeNull();
  expect(readFrame(frame, 0, crc32)).toBeNull();
});

it('finds the same end of an intact frame with both readers', () => {
  const frame = foreign(() => undefined);
  expect(checkedEnd(frame, 0, crc32)).toBe(frame.length);
  expect(readFrame(frame, 0, crc32)?.end).toBe(frame.length);
});
