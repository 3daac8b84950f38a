import { checkRound } from './checker';
import type { Arrival, RoundEvidence } from './evidence';
import { arrival, NOW_MS, round, SENT } from './fixtures';

/** Lines 0 and 2, and further ones, sent again although nothing struck. */
function judged(arrivals: readonly Arrival[], isThroughGateway: boolean): string[] {
  const evidence: RoundEvidence = round({ arrivals });
  const [batch] = evidence.batches;
  if (batch === undefined) throw new Error('a round without a batch');
  const batches = [{ ...batch, plan: { ...batch.plan, isThroughGateway } }];
  return checkRound({ ...evidence, batches })
    .violations.map(({ rule }) => rule)
    .filter((rule) => rule === 'sent-again');
}

const again = (index: number): Arrival => arrival(index, { atMs: NOW_MS + 950 });
const slow = arrival(2, { endedAtMs: NOW_MS + 800 });

it('allows the resending of one line whose dispatch may have crossed the close at a gateway', () => {
  expect(judged([...SENT, again(0)], false)).toEqual(['sent-again']);
  expect(judged([...SENT, again(0)], true)).toEqual([]);
});

it('allows neither several of them, nor a line that was worked on for longer', () => {
  expect(judged([...SENT, again(0), again(2), again(3)], true)).toHaveLength(3);
  const others = SENT.filter(({ lineId }) => lineId !== slow.lineId);
  expect(judged([...others, slow, again(2)], true)).toEqual(['sent-again']);
});
