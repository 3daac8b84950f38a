import type { BatchStatus } from '../../../core/batch/status';
import { isLegalTransition, STATUS_TIMES } from '../../support/transitions';
import { BATCH_STATUSES, isTerminal } from '../../../core/batch/status';
import type { BatchEvidence, BatchView, Violation } from './evidence';
import { lastSeen } from './evidence';

/** Whether `to` can follow `from`, with any number of unseen statuses in between. */
export function isReachable(from: BatchStatus, to: BatchStatus): boolean {
  return (
    from === to ||
    BATCH_STATUSES.some((next) => isLegalTransition(from, next) && isReachable(next, to))
  );
}

/** Checks the samples of a batch: statuses in legal order, times that stay, counts that grow. */
export function checkStates(evidence: BatchEvidence): Violation[] {
  const { samples, plan } = evidence;
  const violations: Violation[] = [];
  const blame = (rule: string, detail: string): void => {
    violations.push({ rule, batch: plan.name, detail });
  };
  samples.forEach(({ batch }, i) => {
    checkOne(batch, blame);
    const before = samples[i - 1]?.batch;
    if (before !== undefined) checkStep(before, batch, blame);
  });
  checkCancels(evidence, blame);
  const end = lastSeen(evidence);
  if (end === null || !isTerminal(end.status)) {
    blame('no-end', `last seen ${end === null ? 'never' : end.status}`);
  }
  return violations;
}

type Blame = (rule: string, detail: string) => void;

function checkOne(batch: BatchView, blame: Blame): void {
  const { status, request_counts: counts } = batch;
  if (status !== 'validating' && batch[`${status}_at`] === null) {
    blame('times', `${status} without its time`);
  }
  for (const ended of ['completed', 'failed', 'expired', 'cancelled'] as const) {
    if (batch[`${ended}_at`] !== null && status !== ended) {
      blame('times', `${status} with ${ended}_at`);
    }
  }
  if (counts.completed + counts.failed > counts.total) {
    blame('counts', `${JSON.stringify(counts)} while ${status}`);
  }
}

function checkStep(before: BatchView, after: BatchView, blame: Blame): void {
  if (!isReachable(before.status, after.status)) {
    blame('transition', `${before.status} was followed by ${after.status}`);
  }
  for (const time of STATUS_TIMES) {
    if (before[time] !== null && before[time] !== after[time]) {
      blame('times', `${time} was ${before[time]}, then ${String(after[time])}`);
    }
  }
  if (isTerminal(before.status)) {
    if (JSON.stringify(before) !== JSON.stringify(after)) {
      blame('terminal', `changed from ${JSON.stringify(before)} to ${JSON.stringify(after)}`);
    }
    return;
  }
  if (isTerminal(after.status)) return;
  for (const count of ['total', 'completed', 'failed'] as const) {
    const [was, is] = [before.request_counts[count], after.request_counts[count]];
    if (is < was) blame('counts', `${count} fell from ${was} to ${is}`);
  }
}

/** An accepted cancel decides the end. A refused one needs another end. Its answer fits the samples. */
function checkCancels({ cancels, samples }: BatchEvidence, blame: Blame): void {
  const end = samples.at(-1)?.batch.status;
  for (const { httpStatus, batch, sentMs, gotMs } of cancels) {
    if (httpStatus === 409 && (end === 'cancelled' || end === 'cancelling')) {
      blame('cancel', `refused, though the batch ended ${end}`);
    }
    if (httpStatus === 200 && end === 'completed') blame('cancel', `accepted, then completed`);
    if (![200, 409].includes(httpStatus)) blame('cancel', `answered ${httpStatus}`);
    if (batch === null) continue;
    if (batch.status === 'cancelling' && end !== 'cancelled') {
      blame('cancel', `answered cancelling, then the batch ended ${String(end)}`);
    }
    for (const sample of samples) {
      const later = sample.sentMs >= gotMs && !isReachable(batch.status, sample.batch.status);
      const earlier = sample.gotMs <= sentMs && !isReachable(sample.batch.status, batch.status);
      if (later || earlier) {
        const order = later ? 'before' : 'after';
        blame('transition', `cancel showed ${batch.status} ${order} ${sample.batch.status}`);
      }
    }
  }
}
