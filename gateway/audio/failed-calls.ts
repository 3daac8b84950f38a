import type { CallFailure } from '../../inference/audio/audio-calls';
import { faultOf, type JobOutcome, type PooledJob } from './pooled-job';

/** Refusals of workers for lack of a slot after which a job is given up. */
const MOST_REFUSALS = 3;

/** What becomes of a job after a call that failed: `repeat`, or its end. */
export type AfterFailure = JobOutcome | 'repeat';

/**
 * Decides whether the call of a job is repeated (docs/design/audio-calls.md#failed-calls). It counts the failure in the
 * job. After a part of the answer was passed on, nothing is repeated.
 */
export function afterFailure(entry: PooledJob, { kind, message }: CallFailure): AfterFailure {
  switch (kind) {
    case 'lost':
      return ++entry.lostCalls === 1 && !entry.isPassedOn ? 'repeat' : fault('backend_lost');
    case 'exhausted':
      if (++entry.refusals < MOST_REFUSALS && !entry.isPassedOn) return 'repeat';
      return fault('backend_exhausted');
    case 'timeout':
      return fault('backend_timeout');
    case 'invalid':
    case 'not_found':
      return { kind: 'fault', code: kind, message, wasDispatched: true };
    case 'failed':
      return { kind: 'fault', code: 'backend_failed', message, wasDispatched: true };
    case 'source':
    case 'aborted':
      return fault('internal');
  }
}

function fault(code: Parameters<typeof faultOf>[0]): JobOutcome {
  return faultOf(code, true);
}
