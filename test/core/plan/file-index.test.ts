import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import type { ScannedRequest } from '../../../core/openai/scan-sink';
import { FileIndexBuilder, readFileIndex, type IndexTerms } from '../../../core/plan/file-index';
import { RULES } from '../openai/scan';

const TERMS: IndexTerms = { release: '1.2.3', rules: RULES, bytes: 4_000 };

function request(changes: Partial<ScannedRequest> = {}): ScannedRequest {
  const chain = { blocks: new Uint32Array([7, 8, 9]), from: 1, length: 2 };
  return { offset: 3, length: 90, prefixHash: 5, model: 'm', fileId: null, chain, ...changes };
}

/** A copy, because the builder keeps its memory. */
function built(requests: readonly ScannedRequest[], terms = TERMS): Buffer {
  const builder = new FileIndexBuilder();
  for (const one of requests) builder.add(one);
  return Buffer.from(builder.build(terms, crc32));
}

const isRead = (index: Buffer, terms = TERMS): boolean =>
  readFileIndex(index, terms, crc32) !== null;

describe('an index of a file', () => {
  it('has a fixed format', () => {
    const index = built([request(), request({ offset: 95, model: 'é' })]);
    const words = new Uint32Array(new Uint8Array(index.subarray(0, 56)).buffer);
    expect(index.toString('latin1', 0, 4)).toBe('NSI1');
    expect([...words.subarray(1)]).toEqual([
      ...[12, 3, 90, 5, 2 << 16, 8, 9],
      ...[2, 90, 5, (2 << 16) | 1, 8, 9],
    ]);
    expect(JSON.parse(index.toString('utf8', 56, index.length - 4))).toEqual({
      ...{ version: 1, release: '1.2.3', rules: RULES, bytes: 4_000 },
      ...{ requests: 2, models: ['m', 'é'] },
    });
    expect(index.readUInt32LE(index.length - 4)).toBe(crc32(index.subarray(0, -4)));
  });

  it('is read at any place in memory', () => {
    const index = built([request()]);
    for (let shift = 0; shift < 4; shift++) {
      const memory = Buffer.alloc(index.length + shift);
      index.copy(memory, shift);
      const found: number[] = [];
      const sink = { request: ({ length }: ScannedRequest) => void found.push(length) };
      expect(readFileIndex(memory.subarray(shift), TERMS, crc32)?.tellSome(sink, 9)).toBe(false);
      expect(found).toEqual([90]);
    }
  });

  it.each([
    ['another release', { release: '1.2.4' }],
    ['another size of the file', { bytes: 4_001 }],
    ['another endpoint', { rules: { ...RULES, endpoint: '/v1/completions' } }],
    ['a lower limit', { rules: { ...RULES, maxRequests: 1 } }],
    ['a higher limit', { rules: { ...RULES, json: { ...RULES.json, maxDepth: 1 << 20 } } }],
  ])('is of no use for %s', (_what, changes) => {
    const index = built([request()]);
    expect(isRead(index)).toBe(true);
    expect(isRead(index, { ...TERMS, ...changes })).toBe(false);
  });

  it('is of no use if a byte is wrong or missing, or in another version', () => {
    const index = built([request()]);
    fc.assert(
      fc.property(fc.nat(index.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const damaged = Buffer.from(index);
        damaged[at] = damaged[at]! ^ change;
        expect(isRead(damaged)).toBe(false);
        expect(isRead(index.subarray(0, at))).toBe(false);
      }),
    );
    const later = Buffer.from(
      index.toString('latin1').replace('"version":1', '"version":2'),
      'latin1',
    );
    later.writeUInt32LE(crc32(later.subarray(0, -4)), later.length - 4);
    expect(isRead(later)).toBe(false);
  });

  it('is not made of more requests than 8 MiB hold, and its memory serves the next file', () => {
    const builder = new FileIndexBuilder();
    const fill = (): void => {
      for (let i = 0; i < 400_000; i++) builder.add(request({ offset: 100 * i }));
    };
    expect(fill).toThrow(RangeError);
    builder.clear();
    builder.add(request());
    expect(builder.build(TERMS, crc32)).toEqual(built([request()]));
  });

  it('is not made if its terms do not fit', () => {
    const builder = new FileIndexBuilder();
    for (let i = 0; i < 349_520; i++) builder.add(request({ offset: 100 * i }));
    expect(() => builder.build(TERMS, crc32)).toThrow(/out of range/);
  });
});
