import fc from 'fast-check';
import { GatheredWrites } from '../../../storage/objects/gathered-writes';

/** Writes that end when the test lets them. */
function disk() {
  const written: Buffer[] = [];
  const ends: { resolve(): void; reject(error: Error): void }[] = [];
  const write = (bytes: Uint8Array): Promise<void> =>
    new Promise<void>((resolve, reject) => {
      ends.push({
        resolve: () => {
          written.push(Buffer.from(bytes));
          resolve();
        },
        reject,
      });
    });
  return { write, written, ends };
}

const KIB = 1024;

describe('gathered writes', () => {
  it('write all pieces in order, whatever their sizes, even if the memory of a piece is used again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.nat(70 * KIB), fc.constantFrom(0, 64 * KIB, 512 * KIB, 700 * KIB))),
        async (sizes) => {
          const written: Buffer[] = [];
          const gathered = new GatheredWrites(async (bytes) => {
            await new Promise((resolve) => setImmediate(resolve));
            written.push(Buffer.from(bytes));
          });
          const pieces = sizes.map((size, i) => Buffer.alloc(size, `${i}`));
          for (const piece of pieces) {
            const lent = Buffer.from(piece);
            await gathered.add(lent);
            lent.fill(0);
          }
          await gathered.finish();
          expect(Buffer.concat(written).equals(Buffer.concat(pieces))).toBe(true);
          expect(written.filter(({ length }) => length === 0)).toEqual([]);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('are few, and take pieces while one of them runs', async () => {
    const { write, written, ends } = disk();
    const gathered = new GatheredWrites(write);
    for (let i = 0; i < 9; i++) await gathered.add(Buffer.alloc(63 * KIB, 1));
    expect(ends).toHaveLength(1);
    const next = gathered.add(Buffer.alloc(63 * KIB, 1));
    ends[0]!.resolve();
    await next;
    expect(ends).toHaveLength(2);
    const end = gathered.finish();
    ends[1]!.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    ends[2]!.resolve();
    await end;
    expect(written.map(({ length }) => length / KIB)).toEqual([64, 512, 54]);
  });

  it('throw the error of a write with the next call', async () => {
    const { write, ends } = disk();
    const gathered = new GatheredWrites(write);
    await gathered.add(Buffer.alloc(64 * KIB));
    ends[0]!.reject(new Error('the disk is full'));
    await expect(gathered.finish()).rejects.toThrow('the disk is full');
  });

  it('can be abandoned, which waits for the one that runs and begins no other one', async () => {
    const { write, written, ends } = disk();
    const gathered = new GatheredWrites(write);
    await gathered.add(Buffer.alloc(65 * KIB));
    let isOver = false;
    const end = gathered.abandon().then(() => (isOver = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    ends[0]!.reject(new Error('the disk is full'));
    await end;
    expect([ends.length, written.length]).toEqual([1, 0]);
  });
});
