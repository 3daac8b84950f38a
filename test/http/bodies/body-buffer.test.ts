import { BodyBuffer } from '../../../http/bodies/body-buffer';

function bufferOf(declaredBytes: number | null, room = Infinity) {
  const reserved: number[] = [];
  const total = () => reserved.reduce((sum, bytes) => sum + bytes, 0);
  const reserve = (bytes: number) => {
    if (total() + bytes > room) return false;
    reserved.push(bytes);
    return true;
  };
  const buffer = new BodyBuffer({ declaredBytes, maxBytes: 100_000, reserve });
  return { buffer, total };
}

it('reserves what arrives, doubling, and never more than the declared length', () => {
  const { buffer, total } = bufferOf(50_000);
  expect(total()).toBe(0);
  const reserved = Array.from({ length: 50 }, (_, i) => {
    expect(buffer.append(Buffer.alloc(1_000, i))).toBe(true);
    return total();
  });
  expect([...new Set(reserved)]).toEqual([16_384, 32_768, 50_000]);
});

it('joins pieces of any size without a declared length, and never reserves more than the maximum', () => {
  const { buffer, total } = bufferOf(null);
  const pieces = Array.from({ length: 1_000 }, (_, i) => Buffer.alloc(i % 3 === 0 ? 1 : 149, i));
  for (const piece of pieces) expect(buffer.append(piece)).toBe(true);
  expect(buffer.finish().equals(Buffer.concat(pieces))).toBe(true);
  expect(total()).toBe(100_000);
});

it('refuses the piece that needs more than there is, before it takes memory for it', () => {
  const { buffer, total } = bufferOf(null, 20_000);
  expect(buffer.append(Buffer.alloc(16_384))).toBe(true);
  expect(buffer.append(Buffer.alloc(1))).toBe(false);
  expect(total()).toBe(16_384);
});
