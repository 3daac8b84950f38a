import type { Transcription } from '../../core/audio/transcription';
import type { CallEnd, CallOptions, RunningCall } from '../../inference/audio/audio-calls';
import type { FileWork, SpeechWork } from './job';
import type { PooledJob } from './pooled-job';
import type { Slot } from './slot-table';

/** How a job's part of a call ended; speech has no result. */
export type JobCallEnd = CallEnd<Transcription | null>;

/** What a {@link SlotRun} tells the pool. */
export interface SlotRunPorts {
  /** The outcome of a job, once for each that was not let go. */
  onOutcome(entry: PooledJob, end: JobCallEnd): void;
  /** The call has ended, after all outcomes. `isCertain`: the worker works on nothing of it any more. */
  onEnded(isCertain: boolean): void;
}

/** One call to a worker in one slot, for one job or several. */
export class SlotRun {
  readonly slot: Slot;
  /** What the worker knows the call by. */
  readonly id: string;
  readonly entries: readonly PooledJob[];
  readonly #live: Set<PooledJob>;
  readonly #ports: SlotRunPorts;
  #call: RunningCall<unknown> | null = null;
  #cancel: Promise<boolean> | null = null;
  /** Jobs that were let go. */
  readonly letGone: PooledJob[] = [];

  constructor(slot: Slot, id: string, entries: readonly PooledJob[], ports: SlotRunPorts) {
    this.slot = slot;
    this.id = id;
    this.entries = entries;
    this.#live = new Set(entries);
    this.#ports = ports;
  }

  /** Whether it ends because no job needs it any more. */
  get isCancelled(): boolean {
    return this.#cancel !== null;
  }

  /** Begins the call. Call it once. */
  start(timeoutMs: number): void {
    try {
      this.#begin(timeoutMs);
    } catch (error) {
      // The connection is closed, which happens when the process ends.
      const message = error instanceof Error ? error.message : String(error);
      const end = { ok: false, failure: { kind: 'lost', message } } as const;
      for (const entry of [...this.#live]) this.#settle(entry, end);
      this.#ports.onEnded(true);
    }
  }

  #begin(timeoutMs: number): void {
    const [first] = this.entries;
    if (first === undefined) throw new RangeError('a call without a job');
    const options = { requestId: this.id, timeoutMs, metadata: first.job.metadata };
    if (this.entries.length > 1) this.#startBatch(options);
    else if (first.job.work.kind === 'file') this.#startFile(first, first.job.work, options);
    else this.#startSpeech(first, first.job.work, options);
  }

  /**
   * The owner of a job needs it no more. With the last one the call is cancelled: the worker is told, and the call is
   * ended when it has acknowledged that, or has not in time (docs/design/audio-scheduling.md#cancellation).
   */
  letGo(entry: PooledJob): void {
    if (!this.#live.delete(entry)) return;
    this.letGone.push(entry);
    const call = this.#call;
    if (this.#live.size > 0 || call === null || this.#cancel !== null) return;
    this.#cancel = this.slot.worker.link.cancel(this.id);
    void this.#cancel.then(() => call.abort());
  }

  #startFile(entry: PooledJob, { options, audio }: FileWork, how: CallOptions): void {
    const call = this.slot.worker.link.transcribe({
      ...how,
      options: { ...options, requestId: this.id },
      audio,
      onDelta: (text) => {
        if (!this.#live.has(entry)) return;
        entry.isPassedOn = true;
        entry.owner.onDelta(text);
      },
    });
    this.#follow(call, (end) => this.#settle(entry, end));
  }

  #startSpeech(entry: PooledJob, { request }: SpeechWork, how: CallOptions): void {
    const call = this.slot.worker.link.synthesize({
      ...how,
      request: { ...request, requestId: this.id },
      onChunk: (chunk) => {
        if (!this.#live.has(entry)) return undefined;
        entry.isPassedOn ||= chunk.audio.length > 0;
        entry.audioSec = Math.max(entry.audioSec ?? 0, chunk.durationS);
        return entry.owner.onAudio(chunk);
      },
    });
    this.#follow(call, (end) => this.#settle(entry, end));
  }

  #startBatch(how: CallOptions): void {
    const items = this.entries.map(({ job: { work, requestId } }) => {
      // Only recordings are put into one call.
      if (work.kind !== 'file') throw new TypeError('speech in a call for recordings');
      return { options: { ...work.options, requestId }, audio: work.audio };
    });
    const call = this.slot.worker.link.transcribeBatch({
      ...how,
      items,
      onItem: (index, end) => {
        const entry = this.entries[index];
        if (entry !== undefined) this.#settle(entry, end);
      },
    });
    this.#follow(call, (end) => {
      for (const entry of [...this.#live]) this.#settle(entry, end);
    });
  }

  #follow<T>(call: RunningCall<T>, settle: (end: CallEnd<T>) => void): void {
    this.#call = call;
    void call.ended.then(async (end) => {
      settle(end);
      // The answer to a Cancel may come after the end of the call.
      this.#ports.onEnded(this.#cancel === null || (await this.#cancel));
    });
  }

  #settle(entry: PooledJob, end: JobCallEnd): void {
    if (this.#live.delete(entry)) this.#ports.onOutcome(entry, end);
  }
}
