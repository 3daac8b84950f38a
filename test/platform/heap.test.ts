import { createChunkCollector } from '../../platform/heap';

const MIB = 1024 ** 2;
const CHUNK_BYTES = 64 * 1024;

describe('the chunk collector', () => {
  it('collects once for every 4 MiB of streamed bytes', () => {
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

  it("keeps the memory of dead chunks far below V8's default", () => {
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

  it('does not expose gc to other code', () => {
    createChunkCollector();
    expect('gc' in globalThis).toBe(false);
  });
});
