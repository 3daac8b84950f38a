import fc from 'fast-check';
import { createPlanBuilder, type PlanBuilder } from '../../../core/plan/plan-builder';
import {
  decodePlanEntry,
  encodePlanEntry,
  PLAN_ENTRY_BYTES,
  planEntryOffset,
  type PlanEntry,
} from '../../../core/plan/plan-entry';

const entry = fc.record<PlanEntry>({
  offset: fc.maxSafeNat(),
  length: fc.nat(2 ** 32 - 1),
  prefixHash: fc.oneof(fc.nat(3), fc.nat(2 ** 32 - 1)),
});

function decodeAll(plan: Buffer): PlanEntry[] {
  return Array.from({ length: plan.length / PLAN_ENTRY_BYTES }, (_, i) => decodePlanEntry(plan, i));
}

const NO_CHAIN = { blocks: new Uint32Array(0), from: 0, length: 0 };
const emptyBuilder = createPlanBuilder;

/** Copies each piece, because it is valid only until the next one. */
async function gather(builder: PlanBuilder): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of builder.build().pieces()) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

describe('a plan entry', () => {
  it('is written as 16 little-endian bytes', () => {
    const bytes = Buffer.alloc(PLAN_ENTRY_BYTES);
    encodePlanEntry(bytes, 0, { offset: 2 ** 32 + 5, length: 258, prefixHash: 0xfffffffe });
    expect(bytes.toString('hex')).toBe('050000000100000002010000feffffff');
    expect(bytes.readBigInt64LE(0)).toBe(2n ** 32n + 5n);
  });

  it('is read back unchanged', () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 20 }), (entries) => {
        const bytes = Buffer.alloc(entries.length * PLAN_ENTRY_BYTES);
        entries.forEach((e, i) => encodePlanEntry(bytes, i * PLAN_ENTRY_BYTES, e));
        expect(decodeAll(bytes)).toEqual(entries);
        entries.forEach(({ offset }, i) => expect(planEntryOffset(bytes, i)).toBe(offset));
      }),
    );
  });
});

describe('a plan', () => {
  it('is ordered by prefix hash and keeps input order inside equal hashes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 300 }), async (entries) => {
        const builder = emptyBuilder();
        entries.forEach((e) => builder.add(e, NO_CHAIN));
        expect(builder.count).toBe(entries.length);
        const expected = [...entries].sort((a, b) => a.prefixHash - b.prefixHash);
        expect(decodeAll(await gather(builder))).toEqual(expected);
      }),
    );
  });

  it.each([
    ['in input order', () => 7],
    ['in another order', (i: number) => 9_000 - (i % 10)],
  ])('with many lines is written in pieces, %s', async (_, hashOf) => {
    const builder = emptyBuilder();
    const entries = Array.from({ length: 9_000 }, (_, i): PlanEntry => {
      return { offset: 2 ** 33 + i, length: i, prefixHash: hashOf(i) };
    });
    entries.forEach((e) => builder.add(e, NO_CHAIN));
    const expected = [...entries].sort((a, b) => a.prefixHash - b.prefixHash);
    expect(decodeAll(await gather(builder))).toEqual(expected);
  });

  it('without lines is empty', async () => {
    expect(await gather(emptyBuilder())).toHaveLength(0);
  });
});
