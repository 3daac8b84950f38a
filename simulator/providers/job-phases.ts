import type { ProviderSettings } from './settings';

/** The end of a job. */
export type JobEnd = ProviderSettings['ends'][number];
/** What a job does. */
export type JobPhase = 'validating' | 'in_progress' | 'finalizing' | 'cancelling' | JobEnd;

/** A job's way through its phases. */
export interface JobProgress {
  readonly phase: JobPhase;
  /** When the phase began, Unix ms. */
  readonly sinceMs: number;
  /** When each phase began, Unix ms. */
  readonly times: Readonly<Partial<Record<JobPhase, number>>>;
  /** Lines that have an answer at the end. */
  readonly answered: number;
}

/** What decides the phases of a job. */
export interface JobCourse {
  readonly lines: number;
  readonly end: JobEnd;
}

/** When the settings apply. */
export interface PhaseClock {
  readonly nowMs: number;
  /** The last change of the settings: no phase that it ended has ended before it. */
  readonly changedMs: number;
}

const ENDS: ReadonlySet<JobPhase> = new Set(['completed', 'failed', 'expired', 'cancelled']);

/** Whether nothing happens to a job any more. */
export function hasEnded(phase: JobPhase): boolean {
  return ENDS.has(phase);
}

/** A job that was accepted. */
export function begun(nowMs: number): JobProgress {
  return { phase: 'validating', sinceMs: nowMs, times: { validating: nowMs }, answered: 0 };
}

/** All phases up to now. It depends on the times only, not on how often it is called. */
export function advanced(
  progress: JobProgress,
  course: JobCourse,
  settings: ProviderSettings,
  clock: PhaseClock,
): JobProgress {
  const next = nextPhase(progress.phase, course, settings);
  if (next === null) return progress;
  const atMs = Math.max(progress.sinceMs + next.afterMs, clock.changedMs);
  if (atMs > clock.nowMs) return progress;
  const later = entered(progress, next.phase, atMs, course.lines, settings);
  return advanced(later, course, settings, clock);
}

/** A job that is cancelled now; the same if it is being cancelled or has ended. */
export function cancelled(
  progress: JobProgress,
  { lines }: JobCourse,
  settings: ProviderSettings,
  nowMs: number,
): JobProgress {
  const { phase } = progress;
  if (phase === 'cancelling' || hasEnded(phase)) return progress;
  return entered(progress, 'cancelling', nowMs, lines, settings);
}

function nextPhase(
  phase: JobPhase,
  { end }: JobCourse,
  settings: ProviderSettings,
): { readonly phase: JobPhase; readonly afterMs: number } | null {
  switch (phase) {
    case 'validating':
      return {
        phase: end === 'failed' ? 'failed' : 'in_progress',
        afterMs: settings.validating_ms,
      };
    case 'in_progress':
      if (settings.hold) return null;
      return { phase: end === 'completed' ? 'finalizing' : end, afterMs: settings.running_ms };
    case 'finalizing':
      return { phase: 'completed', afterMs: settings.finalizing_ms };
    case 'cancelling':
      return { phase: 'cancelled', afterMs: settings.cancelling_ms };
    default:
      return null;
  }
}

function entered(
  { phase: from, times, answered }: JobProgress,
  phase: JobPhase,
  atMs: number,
  lines: number,
  settings: ProviderSettings,
): JobProgress {
  const isStopped = from === 'in_progress' && phase !== 'finalizing';
  const share = isStopped ? settings.answered_share : 1;
  return {
    phase,
    sinceMs: atMs,
    times: { ...times, [phase]: atMs },
    answered: from === 'in_progress' ? Math.floor(lines * share) : answered,
  };
}
