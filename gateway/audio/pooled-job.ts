import type { FaultCode } from '../../core/dispatch/drop-codes';
import { BAND } from '../../core/dispatch/queue/band';
import type { QueuedRequest } from '../../core/dispatch/queue/queued-request';
import type { AudioWorkerLink } from '../../inference/audio/audio-calls';
import type { AudioJob, AudioJobEnd, AudioJobOwner, AudioJobTimes } from './job';

/** The level of the seed that a request has on arrival. */
export type SchedulerPriority = 'REALTIME' | 'BATCH';

/** How a job ended, without its times. */
export type JobOutcome = AudioJobEnd extends infer End
  ? End extends AudioJobTimes
    ? Omit<End, keyof AudioJobTimes>
    : never
  : never;

/** One job from its arrival to its end, and everything that the pool notes of it. */
export class PooledJob {
  readonly job: AudioJob;
  readonly owner: AudioJobOwner;
  readonly priority: SchedulerPriority;
  /** On the pool's clock. */
  readonly arrivedMs: number;
  /** Its place in the queue; null while it is collected. */
  request: QueuedRequest | null = null;
  /** Whether it was collected, queued or dispatched, and not refused on arrival. */
  wasAdmitted = false;
  wasDispatched = false;
  /** Whether a part of the answer was passed on, so that no call is repeated. */
  isPassedOn = false;
  isSettled = false;
  lostCalls = 0;
  refusals = 0;
  /** Seconds of audio of its answer; null if they are not known. */
  audioSec: number | null = null;
  /** The worker of its last call. */
  lastWorker: AudioWorkerLink | null = null;

  constructor(job: AudioJob, owner: AudioJobOwner, arrivedMs: number) {
    this.job = job;
    this.arrivedMs = arrivedMs;
    this.owner = owner;
    this.priority = job.band === BAND.critical ? 'REALTIME' : 'BATCH';
  }

  /** Requests that may go in one call have the same group. */
  get group(): string {
    const { model, task } = this.job.need;
    return `${task} ${model}`;
  }
}

/** A fault with the usual words of its code. */
export function faultOf(code: FaultCode, wasDispatched: boolean): JobOutcome {
  return { kind: 'fault', code, message: null, wasDispatched };
}
