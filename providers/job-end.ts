import type { JobState } from './provider';

const OPEN_STATES: readonly JobState[] = ['submitted', 'running', 'cancelling'];

/** Whether nothing happens to a job in this state any more. */
export function hasEnded(state: JobState): boolean {
  return !OPEN_STATES.includes(state);
}
