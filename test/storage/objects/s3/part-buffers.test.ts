import { PartBuffers } from '../../../../storage/objects/s3/part-buffers';
import { ConcurrencyLimit } from '../../../../core/async/concurrency-limit';

const MIB = 1024 ** 2;

describe('buffers of parts', () => {
  it.each([
    [1, 5],
    [1_000, 5],
    [1_001, 10],
    [2_001, 20],
  ])('give part %i a size of %i MiB', (number, sizeMib) => {
    const part = new PartBuffers().take(number);
    expect(part.write(Buffer.alloc(sizeMib * MIB + 10), 5)).toBe(sizeMib * MIB);
    expect(part.isFull).toBe(true);
    expect(part.bytes).toHaveLength(sizeMib * MIB);
  });

  it('hold no more than about twice the bytes that have arrived', () => {
    const part = new PartBuffers().take(1);
    for (let i = 0; i < 300; i++) {
      expect(part.write(Buffer.alloc(1_000, i), 0)).toBe(1_000);
      expect(part.release().length).toBeLessThanOrEqual(Math.max(64 * 1024, 2_000 * (i + 1)));
    }
    for (let i = 0; i < 300; i++) expect(part.bytes[i * 1_000 + 999]).toBe(i % 256);
  });

  it('are used again once they were given back, and a few are kept', () => {
    const buffers = new PartBuffers();
    const parts = Array.from({ length: 16 }, () => buffers.take(1));
    for (const part of parts) part.write(Buffer.alloc(5 * MIB), 0);
    for (const part of parts) buffers.give(part);
    const known = new Set(parts.map((part) => part.release()));
    const next = Array.from({ length: 16 }, () => buffers.take(1));
    expect(next.filter((part) => known.has(part.release()))).toHaveLength(12);
    expect(next.every((part) => part.bytes.length === 0)).toBe(true);
  });
});

describe('slots', () => {
  it('bound how many tasks run at once, and keep their order, also after failures', async () => {
    const slots = new ConcurrencyLimit(3);
    const started: number[] = [];
    let running = 0;
    let most = 0;
    const tasks = Array.from({ length: 20 }, (_, i) =>
      slots.run(async () => {
        started.push(i);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        if (i % 3 === 0) throw new Error('failed');
      }),
    );
    const outcomes = await Promise.allSettled(tasks);
    expect(most).toBe(3);
    expect(started).toEqual(started.toSorted((a, b) => a - b));
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(7);
  });
});
