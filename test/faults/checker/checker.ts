import type { RoundEvidence, Violation } from './evidence';
import { expectedLines } from './expect';
import { checkFiles } from './files';
import { type Resend, SendsCheck } from './sends';
import { checkStates } from './states';
import { checkUsers } from './users';

export interface Verdict {
  readonly violations: readonly Violation[];
  /** Lines that were sent although an earlier request for them had not failed. */
  readonly resends: readonly Resend[];
}

/** Checks a round by what was visible from outside. A pure function. */
export function checkRound(round: RoundEvidence): Verdict {
  const sends = new SendsCheck(round);
  const violations: Violation[] = [];
  for (const batch of round.batches) {
    const files = checkFiles(batch);
    violations.push(...checkStates(batch), ...files.violations);
    sends.check(batch, files.endings);
  }
  sends.finish();
  return {
    violations: [...violations, ...sends.violations, ...foreign(round), ...checkUsers(round)],
    resends: sends.resends,
  };
}

/** Requests that belong to no line of this round: invented, or of a batch that ended long ago. */
function foreign({ arrivals, batches }: RoundEvidence): Violation[] {
  const lines = batches.flatMap(({ plan, id }) => expectedLines(plan, id));
  const known = new Set(lines.map(({ lineId }) => lineId));
  return arrivals
    .filter(({ lineId }) => !known.has(lineId))
    .map(({ lineId }) => ({ rule: 'foreign-request', batch: '', detail: lineId }));
}
