import type { AudioTask } from '../../core/audio/audio-need';
import type { Latency } from '../../core/audio/latency-tracker';
import type { JobOutcome, SchedulerPriority } from './pooled-job';

/** A job that has ended. */
export interface EndedJob {
  readonly priority: SchedulerPriority;
  readonly task: AudioTask;
  readonly model: string;
  readonly outcome: JobOutcome;
  /** False if it was refused on arrival. */
  readonly wasAdmitted: boolean;
  readonly latency: Latency | null;
  /** Seconds of audio that were recognised; 0 without an answer. */
  readonly audioSec: number;
}

/** A call to a worker that has ended. */
export interface EndedCall {
  readonly task: AudioTask;
  readonly priority: SchedulerPriority;
  readonly ms: number;
  /** Requests in it. */
  readonly items: number;
}

/** Takes what the audio pool does, for metrics. What it throws is reported, and affects no request. */
export interface AudioObserver {
  onCall(call: EndedCall): void;
  /** A call that was cancelled has ended, so long after the cancel. */
  onCancelled(ms: number): void;
  /** Once for each job, whatever became of it. */
  onEnded(job: EndedJob): void;
}
