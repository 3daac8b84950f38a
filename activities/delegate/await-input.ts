import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';
import type { JobAttempt } from './job-attempt';
import { failedCall, observedCall } from './job-attempt';
import { notBeyond, retryLater } from './retry-later';

const ASK_AGAIN_MS = 15_000;

/**
 * Asks once whether the uploaded input may be used. It comes before the lease, because a create with an input that
 * is still processed would be refused for good.
 * @throws a failure that is retried while the provider processes the input
 */
export async function awaitInput(
  attempt: JobAttempt,
  { upload }: Pick<JobRow, 'upload'>,
  signal: AbortSignal,
): Promise<void> {
  if (upload === null) return;
  const { provider, input } = attempt;
  const look = (options: { signal: AbortSignal }) => provider.api.inputState(upload, options);
  const result = await observedCall(attempt, 'input', look, signal);
  if (result.outcome !== 'ok') throw failedCall(attempt, 'input', result, input.giveUpAtMs);
  if (result.value === 'ready') return;
  const pauseMs = notBeyond(ASK_AGAIN_MS, input.giveUpAtMs, Date.now());
  throw retryLater(`${provider.name}: the input file is being processed`, pauseMs);
}
