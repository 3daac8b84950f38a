import { FRAME_KIND } from '../../../core/journal/frame';
import { isPreferred, type Claim } from '../../../core/journal/merge';

/** Claims from the most to the least preferred. */
const ORDER: readonly Claim[] = [FRAME_KIND.output, FRAME_KIND.error].flatMap((kind) =>
  ['a', 'b'].flatMap((objectKey) =>
    [16, 90].map((position) => ({ kind, objectKey, position }) satisfies Claim),
  ),
);

it('prefers answers by kind, then by smaller object name, then by smaller position', () => {
  for (const [i, candidate] of ORDER.entries()) {
    for (const [j, current] of ORDER.entries()) {
      expect([i, j, isPreferred(candidate, current)]).toEqual([i, j, i < j]);
    }
  }
});
