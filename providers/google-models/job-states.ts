import type { JobState } from '../provider';

/** States of batches of Google models: `BATCH_STATE_RUNNING` or `JOB_STATE_RUNNING`. */
const STATES: ReadonlyMap<string, JobState> = new Map([
  ['UNSPECIFIED', 'submitted'],
  ['QUEUED', 'submitted'],
  ['PENDING', 'submitted'],
  ['RUNNING', 'running'],
  ['UPDATING', 'running'],
  ['PAUSED', 'running'],
  ['CANCELLING', 'cancelling'],
  ['SUCCEEDED', 'completed'],
  ['PARTIALLY_SUCCEEDED', 'completed'],
  ['FAILED', 'failed'],
  ['EXPIRED', 'expired'],
  ['CANCELLED', 'cancelled'],
]);
const WORD = /^(?:BATCH|JOB)_STATE_(.+)$/;

/** The state of a job; null for an unknown word. */
export function jobStateOf(word: string): JobState | null {
  const [, name = ''] = WORD.exec(word.toUpperCase()) ?? [];
  return STATES.get(name) ?? null;
}
