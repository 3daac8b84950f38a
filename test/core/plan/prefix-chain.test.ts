import fc from 'fast-check';
import { ChainList } from '../../../core/plan/chain-list';
import { CHAIN_BLOCK_BYTES, createChainReader } from '../../../core/plan/prefix-chain';

const read = createChainReader();

/** The chain of the given parts of a prompt, which lie at odd places of a buffer. */
function chainOf(...parts: Uint8Array[]): number[] {
  const pieces: Buffer[] = [];
  const ranges: number[] = [];
  let at = 0;
  for (const part of parts) {
    pieces.push(Buffer.from([1]), Buffer.from(part));
    ranges.push(at + 1, at + 1 + part.length);
    at += 1 + part.length;
  }
  const { blocks, length } = read({ bytes: Buffer.concat(pieces), ranges });
  return [...blocks.subarray(0, length)];
}

const bytes = fc.uint8Array({ maxLength: 5 * CHAIN_BLOCK_BYTES });

describe('the chain of a prompt', () => {
  it('has an entry for each whole block', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        const blocks = Math.floor((a.length + b.length) / CHAIN_BLOCK_BYTES);
        expect(chainOf(a, b)).toHaveLength(blocks);
      }),
    );
    expect(chainOf(new Uint8Array(1024 * 1024))).toHaveLength(256);
  });

  it('is equal exactly as far as the blocks of two prompts are', () => {
    const block = fc.nat(1).map((byte) => Buffer.alloc(CHAIN_BLOCK_BYTES, byte));
    const blocks = fc.array(block, { maxLength: 5 });
    const rest = fc.nat(CHAIN_BLOCK_BYTES - 1);
    fc.assert(
      fc.property(blocks, blocks, rest, rest, (one, other, cut, tail) => {
        const parts = (prompt: Buffer[]): Buffer[] => {
          const all = Buffer.concat([...prompt, Buffer.alloc(tail)]);
          return [all.subarray(0, cut), all.subarray(cut)];
        };
        const at = one.findIndex((piece, i) => other[i]?.equals(piece) !== true);
        const equal = at === -1 ? one.length : at;
        const [first, second] = [chainOf(...parts(one)), chainOf(...parts(other))];
        expect(first.slice(0, equal)).toEqual(second.slice(0, equal));
        for (let i = equal; i < Math.min(first.length, second.length); i++) {
          expect(first[i]).not.toBe(second[i]);
        }
      }),
    );
  });

  it('does not depend on where the prompt lies and how it is divided', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        expect(chainOf(a, b)).toEqual(chainOf(Buffer.concat([a, b])));
      }),
    );
  });

  it('differs for prompts that differ in thirteen bytes in a row, anywhere in a block', () => {
    const prompt = Buffer.from('The quick brown fox. '.repeat(40)).subarray(0, 512);
    const seen = new Set([chainOf(prompt)[1]]);
    for (let at = 0; at < 500; at++) {
      for (const flip of [0x01, 0x20]) {
        const changed = Buffer.from(prompt);
        for (let i = at; i < at + 13; i++) changed[i] = (changed[i] ?? 0) ^ flip;
        const hash = chainOf(changed)[1];
        expect(hash).not.toBe(chainOf(prompt)[1]);
        seen.add(hash);
      }
    }
    // Thirteen bytes in a row hold one or two of the hashed words, cut in up to 16 ways.
    expect(seen.size).toBeGreaterThan(250);
  });
});

describe('a list of chains', () => {
  const blocksOf = (list: ChainList, line: number): number[] => {
    const [from, to] = list.bounds().slice(line, line + 2);
    return Array.from({ length: to! - from! }, (_, depth) => list.at(from! + depth));
  };

  it('gives back each chain', () => {
    const chain = fc.array(fc.nat(2 ** 32 - 1), { maxLength: 9 });
    fc.assert(
      fc.property(fc.array(chain), (chains) => {
        const list = new ChainList();
        for (const blocks of chains) {
          list.push({ blocks: Uint32Array.from([0, ...blocks]), from: 1, length: blocks.length });
        }
        expect(list.isEmpty).toBe(chains.every(({ length }) => length === 0));
        expect(chains.map((_, line) => blocksOf(list, line))).toEqual(chains);
      }),
    );
  });

  it('grows beyond its first page', () => {
    const list = new ChainList();
    const blocks = Uint32Array.from({ length: 200 }, (_, i) => i);
    for (let line = 0; line < 500; line++) list.push({ blocks, from: 0, length: line % 201 });
    expect(blocksOf(list, 499)).toEqual([...blocks.subarray(0, 97)]);
    expect(blocksOf(list, 401)).toEqual([...blocks]);
  });
});
