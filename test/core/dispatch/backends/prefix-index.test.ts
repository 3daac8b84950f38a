import fc from 'fast-check';
import { PrefixIndex } from '../../../../core/dispatch/backends/prefix-index';

const prompt = (...blocks: number[]) => ({ blocks, length: blocks.length });

/** Rolling hashes: a block is known by all that is before it. */
function chain(contents: readonly number[]) {
  let hash = 0;
  return prompt(...contents.map((content) => (hash = hash * 4 + content + 1)));
}

describe('the index of prefixes', () => {
  it('matches as many blocks as the backend was sent', () => {
    const index = new PrefixIndex<string>(64 * 100);
    index.onComputed('a', prompt(1, 2, 3));
    expect(index.match('a', prompt(1, 2, 9))).toBe(2);
    expect(index.match('a', prompt(1, 2, 3, 4))).toBe(3);
    expect(index.match('a', prompt(9))).toBe(0);
    expect(index.match('b', prompt(1))).toBe(0);
    index.forget('a');
    expect(index.match('a', prompt(1))).toBe(0);
  });

  it('leads later requests to the backend that has computed a prompt, not to a second one', () => {
    const index = new PrefixIndex<string>(64 * 100);
    index.onSent('a', prompt(1, 2, 3));
    expect(index.match('a', prompt(1, 2, 3))).toBe(3);
    index.onComputed('b', prompt(1));
    index.onSent('b', prompt(1, 2, 4));
    expect(index.match('b', prompt(1, 2, 4))).toBe(1);
    index.onComputed('b', prompt(1, 2, 4));
    expect(index.match('b', prompt(1, 2, 4))).toBe(3);
  });

  it('counts only the valid part of a reused buffer', () => {
    const index = new PrefixIndex<string>(64 * 100);
    index.onComputed('a', { blocks: [1, 2, 3], length: 2 });
    expect(index.match('a', { blocks: [1, 2, 3], length: 3 })).toBe(2);
    expect(index.match('a', { blocks: [1, 2, 3], length: 1 })).toBe(1);
  });

  it('agrees with a cache that keeps the blocks that were used last, end first', () => {
    const step = fc.record({
      backend: fc.constantFrom('a', 'b'),
      contents: fc.array(fc.nat(2), { maxLength: 6, size: 'max' }),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60, size: 'max' }),
        fc.integer({ min: 1, max: 12 }),
        (steps, capacity) => {
          const index = new PrefixIndex<string>(64 * capacity);
          const model = new Map<string, number[]>([
            ['a', []],
            ['b', []],
          ]);
          for (const { backend, contents } of steps) {
            const { blocks } = chain(contents);
            for (const [name, known] of model) {
              const missing = blocks.findIndex((block) => !known.includes(block));
              const expected = missing === -1 ? blocks.length : missing;
              expect(index.match(name, chain(contents))).toBe(expected);
            }
            index.onComputed(backend, chain(contents));
            const used = blocks.slice(0, capacity);
            const others = model.get(backend)!.filter((block) => !used.includes(block));
            model.set(backend, [...used, ...others].slice(0, capacity));
          }
        },
      ),
    );
  });
});
