import type { JobOutcome } from '../../core/delegation/job-steps';
import type { JobState } from '../../providers/provider';

/** The states of an ended job, as outcomes. A job in any other state has not ended. */
export const END_OUTCOMES: Partial<Record<JobState, JobOutcome>> = {
  completed: 'completed',
  failed: 'failed',
  expired: 'expired',
  cancelled: 'cancelled',
};
