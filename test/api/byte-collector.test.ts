import fc from 'fast-check';
import { ByteCollector } from '../../api/byte-collector';

it('holds the bytes of all pieces in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9_000 }), { maxLength: 20 }), (pieces) => {
      const bytes = new ByteCollector();
      for (const piece of pieces) bytes.add(Buffer.from(piece));
      const whole = Buffer.concat(pieces);
      expect(bytes.length).toBe(whole.length);
      expect(bytes.all().equals(whole)).toBe(true);
    }),
  );
});

it('takes no more memory than twice the bytes, however small the pieces are', () => {
  const bytes = new ByteCollector();
  const piece = Buffer.from('x');
  for (let i = 0; i < 1_000_000; i++) bytes.add(piece);
  expect(bytes.all().buffer.byteLength).toBeLessThan(2_200_000);
});
