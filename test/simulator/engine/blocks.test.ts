import fc from 'fast-check';
import { blocksOf } from '../../../simulator/engine/blocks';

const BLOCK_CHARACTERS = 64;

it('two prompts share the names of the blocks up to their first difference, and no others', () => {
  const text = fc.string({ minLength: 0, maxLength: 300 });
  fc.assert(
    fc.property(text, text, text, (front, a, b) => {
      const [one, two] = [blocksOf(front + a, 99), blocksOf(front + b, 99)];
      let same = 0;
      while (same < front.length + a.length && (front + a)[same] === (front + b)[same]) same++;
      const shared = Math.floor(same / BLOCK_CHARACTERS);
      expect(one.slice(0, shared)).toEqual(two.slice(0, shared));
      for (const [index, name] of one.entries())
        if (index >= shared) expect(two).not.toContain(name);
      expect(one).toHaveLength(Math.floor((front + a).length / BLOCK_CHARACTERS));
    }),
  );
});

it('a prompt has no more blocks than it is said to have', () => {
  expect(blocksOf('x'.repeat(640), 3)).toHaveLength(3);
});
