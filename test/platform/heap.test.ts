import { createChunkCollector } from '../../platform/heap';

const MIB = 1024 ** 2;
const CHUNK_BYTES = 64 * 1024;

describe('the collector of chunks', () => {
  it('collects once for every 4 MiB that have passed', () => {
    const collected: unknown[] = [];
    const passed = createChunkCollector((options) => collected.push(options));
    for (let bytes = CHUNK_BYTES; bytes < 4 * MIB; bytes += CHUNK_BYTES) passed(CHUNK_BYTES);
    expect(collected).toEqual([]);
    passed(CHUNK_BYTES);
    expect(collected).toEqual([{ type: 'minor' }]);
    passed(100 * MIB);
    passed(1);
    expect(collected).toHaveLength(2);
  });

  it('keeps what dead chunks hold far below what V8 would let them', () => {
    const held = (): number => process.memoryUsage().arrayBuffers;
    const passed = createChunkCollector();
    const before = held();
    let most = 0;
    for (let i = 0; i < 2_000; i++) {
      Buffer.allocUnsafeSlow(CHUNK_BYTES);
      most = Math.max(most, held());
      passed(CHUNK_BYTES);
    }
    expect(most - before).toBeLessThan(16 * MIB);
  });

  it('leaves no collector behind for others', () => {
    createChunkCollector();
    expect('gc' in globalThis).toBe(false);
  });
});
