import { hasEnded } from './job-end';
import type { IdempotentResult, JobState } from './provider';

/** With these, providers refuse to cancel a job that has ended. */
const CANCEL_REFUSALS: readonly (number | null)[] = [400, 409, 422];

type Look = IdempotentResult<{ readonly state: JobState }>;

/** Cancels a job. Many providers refuse that for one that has ended; then a look at the job decides. */
export async function cancelOrLook(
  cancel: () => Promise<Look>,
  look: () => Promise<Look>,
): Promise<IdempotentResult<'requested' | 'ended'>> {
  const result = await cancel();
  if (result.outcome === 'ok') {
    return { outcome: 'ok', value: hasEnded(result.value.state) ? 'ended' : 'requested' };
  }
  if (!CANCEL_REFUSALS.includes(result.failure.status)) return result;
  const looked = await look();
  const isEnded = looked.outcome === 'ok' && hasEnded(looked.value.state);
  return isEnded ? { outcome: 'ok', value: 'ended' } : result;
}
