import fc from 'fast-check';
import { FRAME_KIND } from '../../../core/journal/frame';
import { isPreferred, type Claim } from '../../../core/journal/merge';

const claim: fc.Arbitrary<Claim> = fc.record({
  kind: fc.constantFrom(FRAME_KIND.output, FRAME_KIND.error),
  objectKey: fc.constantFrom('a', 'b', 'c'),
  position: fc.nat(3),
});

it('prefers an output line to an error line with any object names', () => {
  const output = { kind: FRAME_KIND.output, objectKey: 'z', position: 9 };
  const error = { kind: FRAME_KIND.error, objectKey: 'a', position: 1 };
  expect(isPreferred(output, error)).toBe(true);
  expect(isPreferred(error, output)).toBe(false);
});

it('chooses the same answer in any order of reading', () => {
  fc.assert(
    fc.property(
      fc.array(claim, { minLength: 1, maxLength: 6 }),
      fc.infiniteStream(fc.nat()),
      (claims, random) => {
        const choose = (list: readonly Claim[]) =>
          list.reduce((best, next) => (isPreferred(next, best) ? next : best));
        const shuffled = claims
          .map((value) => ({ value, sort: random.next().value as number }))
          .sort((a, b) => a.sort - b.sort)
          .map(({ value }) => value);
        expect(choose(shuffled)).toEqual(choose(claims));
      },
    ),
  );
});
