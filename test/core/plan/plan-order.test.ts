import fc from 'fast-check';
import { ChainList } from '../../../core/plan/chain-list';
import { planOrder } from '../../../core/plan/plan-order';
import { decodeRuns, encodeRuns, RUN_MARK, runsBytes, runsOfHashes } from '../../../core/plan/runs';

/** A line: its prefix hash, and the blocks of its prompt by content. */
interface Line {
  readonly hash: number;
  readonly blocks: readonly number[];
}

/** A hash of each whole prefix, as a rolling hash is. */
function chainOf({ blocks }: Line): number[] {
  let hash = 0;
  return blocks.map((block) => (hash = (Math.imul(hash, 31) + block + 1) >>> 0));
}

function order(lines: readonly Line[]) {
  const chains = new ChainList();
  for (const line of lines) {
    const chain = chainOf(line);
    chains.push({ blocks: Uint32Array.from(chain), from: 0, length: chain.length });
  }
  const { entries, marks } = planOrder(
    Uint32Array.from(lines, ({ hash }) => hash),
    chains,
  );
  const places = entries === null ? lines.map((_, i) => i) : [...entries];
  const hashes = places.map((entry) => lines[entry]!.hash);
  return {
    places,
    marks: [...(marks ?? runsOfHashes(lines.length, (place) => hashes[place]!))],
    isPlain: marks === null,
  };
}

/** Blocks found in an LRU cache of `capacity` blocks that serves one request after another. */
function hits(lines: readonly Line[], places: readonly number[], capacity: number): number {
  const cache = new Set<string>();
  let found = 0;
  for (const place of places) {
    const prefixes = lines[place]!.blocks.map((_, i, all) => all.slice(0, i + 1).join());
    const known = prefixes.findIndex((prefix) => !cache.has(prefix));
    found += known === -1 ? prefixes.length : known;
    // The last block is the least recently used one, so that a prefix outlives what follows it.
    for (const prefix of prefixes.reverse()) {
      cache.delete(prefix);
      cache.add(prefix);
    }
    for (const oldest of cache) {
      if (cache.size <= capacity) break;
      cache.delete(oldest);
    }
  }
  return found;
}

const blocks = fc.array(fc.nat(2), { maxLength: 6 });
const lines = fc.array(fc.record({ hash: fc.nat(2), blocks }), { maxLength: 40 });
const ofOneHash = fc.array(fc.record({ hash: fc.constant(7), blocks }), { maxLength: 40 });
const sharedBlocks = (a: Line, b: Line): number => {
  const at = a.blocks.findIndex((block, i) => b.blocks[i] !== block);
  return at === -1 ? a.blocks.length : at;
};

describe('the order of a plan', () => {
  it('is a permutation, ascending by prefix hash', () => {
    fc.assert(
      fc.property(lines, (all) => {
        const { places } = order(all);
        expect([...places].sort((a, b) => a - b)).toEqual(all.map((_, i) => i));
        const hashes = places.map((place) => all[place]!.hash);
        expect(hashes).toEqual([...hashes].sort((a, b) => a - b));
      }),
    );
  });

  it('keeps the order of the input for equal prompts and for prompts that share nothing', () => {
    fc.assert(
      fc.property(lines, (all) => {
        const at = new Map(order(all).places.map((entry, place) => [entry, place]));
        for (let a = 0; a < all.length; a++) {
          for (let b = a + 1; b < all.length; b++) {
            const [one, other] = [all[a]!, all[b]!];
            if (one.hash !== other.hash) continue;
            const isEqual = one.blocks.join() === other.blocks.join();
            if (isEqual) expect(at.get(a)!).toBeLessThan(at.get(b)!);
          }
        }
      }),
    );
    const unlike = Array.from({ length: 9 }, (_, i) => ({ hash: 0, blocks: [9 - i, 1] }));
    expect(order(unlike).places).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('sends lines that share a prefix back to back', () => {
    fc.assert(
      fc.property(ofOneHash, fc.integer({ min: 1, max: 6 }), (all, depth) => {
        const seen = new Set<string>();
        let last = '';
        for (const place of order(all).places) {
          const line = all[place]!;
          if (line.blocks.length < depth) {
            last = '';
            continue;
          }
          const prefix = line.blocks.slice(0, depth).join();
          if (prefix !== last) expect(seen.has(prefix)).toBe(false);
          seen.add(prefix);
          last = prefix;
        }
      }),
    );
  });

  it('orders branches by their first line', () => {
    const prompts = [[1, 1], [2, 1], [1, 2], [3], [2, 2, 1], [1, 1, 5], [2, 2, 2], [1, 1, 5]];
    const all = prompts.map((prompt) => ({ hash: 7, blocks: prompt }));
    expect(order(all)).toEqual({
      places: [0, 5, 7, 2, 1, 4, 6, 3],
      marks: [1, 1, 0, 0, 1, 1, 0, 0],
      isPlain: false,
    });
  });

  it('never finds fewer blocks in a cache than the order of the input', () => {
    fc.assert(
      fc.property(ofOneHash, fc.integer({ min: 6, max: 60 }), (all, capacity) => {
        const { places } = order(all);
        const input = all.map((_, i) => i);
        expect(hits(all, places, capacity)).toBeGreaterThanOrEqual(hits(all, input, capacity));
        // A cache that never forgets finds the most that any order can.
        expect(hits(all, places, capacity)).toBe(hits(all, input, Infinity));
      }),
    );
  });
});

describe('the runs of a plan', () => {
  it('begin where a line shares more than a quarter more with the next line than with its leader', () => {
    fc.assert(
      fc.property(ofOneHash, (all) => {
        fc.pre(all.length > 1);
        const { places, marks } = order(all);
        const inOrder = places.map((place) => all[place]!);
        // The system prompt of all of them counts as one block.
        const shared = (a: Line, b: Line | undefined) =>
          b === undefined ? 0 : sharedBlocks(a, b) + 1;
        let leader: Line | undefined;
        inOrder.forEach((line, i) => {
          const goesOn =
            leader !== undefined && shared(line, inOrder[i + 1]) <= 1.25 * shared(line, leader);
          if (goesOn) return expect(marks[i]).toBe(RUN_MARK.none);
          expect(marks[i]).toBe(RUN_MARK.shared);
          leader = line;
        });
      }),
    );
  });

  it('need no object if the prefix hashes say as much', () => {
    expect(order([3, 3, 0, 0].map((hash) => ({ hash, blocks: [] })))).toEqual({
      places: [2, 3, 0, 1],
      marks: [RUN_MARK.single, 0, RUN_MARK.shared, 0],
      isPlain: true,
    });
    expect(order([3, 3, 0].map((hash) => ({ hash, blocks: [1, hash] }))).isPlain).toBe(true);
    expect(order([0, 0].map((hash) => ({ hash, blocks: [1] }))).isPlain).toBe(false);
  });

  it('are read back for any range of places', () => {
    const marks = fc.array(fc.nat(2), { maxLength: 50 });
    fc.assert(
      fc.property(marks, fc.nat(50), fc.nat(50), (all, a, b) => {
        const bytes = encodeRuns(Uint8Array.from(all));
        expect(bytes).toHaveLength(Math.ceil(all.length / 4));
        const to = Math.min(all.length, Math.max(a, b));
        const places = { from: Math.min(a, b, to), to };
        const { from: first, to: last } = runsBytes(places);
        expect([...decodeRuns(bytes.subarray(first, last), places)]).toEqual(
          all.slice(places.from, places.to),
        );
      }),
    );
  });
});
