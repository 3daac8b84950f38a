import { callTimeoutMs } from '../../core/audio/call-deadline';
import type { Band } from '../../core/dispatch/queue/band';
import type { AudioWorkerLink } from '../../inference/audio/audio-calls';
import type { AudioConfig } from '../../platform/config-audio';
import { BatchFormer } from './batch-former';
import { afterFailure } from './failed-calls';
import { faultOf, type JobOutcome, type PooledJob } from './pooled-job';
import { type Repeat, Repeats } from './repeats';
import { type JobCallEnd, SlotRun } from './slot-run';
import type { Slot, SlotTable } from './slot-table';

/** What an {@link AudioDispatch} is made of. */
export interface AudioDispatchParts {
  readonly slots: SlotTable;
  readonly audio: Pick<AudioConfig, 'scheduler' | 'accumulator' | 'tts' | 'fair_request_queue'>;
  readonly now: () => number;
  /** Returns a function that cancels the timer. */
  setTimer(run: () => void, ms: number): () => void;
  /** A new id for a call of several requests. */
  newBatchId(): string;
  /** A call begins for a job. */
  onCall(entry: PooledJob): void;
  /** The end of a job. It has no effect on one that is settled. */
  settle(entry: PooledJob, outcome: JobOutcome): void;
  /** Nothing of a job is in flight any more. Called once for each that was dispatched. */
  onDone(entry: PooledJob): void;
  /** A call has ended. */
  onCallEnded(run: SlotRun, times: { readonly ms: number; readonly cancelMs: number | null }): void;
  /** A slot is free, or a job that is to be repeated waits no more: the queue may go on. */
  onFree(): void;
}

/** How long a call that lost its worker waits before the same worker gets it again, ms. */
const SAME_WORKER_MS = 100;

/** The calls of dispatched jobs: which slot each gets, and what follows from its end. */
export class AudioDispatch {
  readonly #parts: AudioDispatchParts;
  readonly #former: BatchFormer;
  readonly #repeats = new Repeats();
  /** Calls that run, and when they began, ms. */
  readonly #runs = new Map<SlotRun, number>();
  /** When the cancel of a call began, ms. */
  readonly #cancelledMs = new Map<SlotRun, number>();
  readonly #runOf = new Map<PooledJob, SlotRun>();

  constructor(parts: AudioDispatchParts) {
    this.#parts = parts;
    this.#former = new BatchFormer({
      afterDispatches: (run) => queueMicrotask(run),
      start: (slot, entries) => this.#call(slot, entries),
    });
  }

  /** Calls that run, and jobs that wait for a repeated one. */
  get busy(): number {
    return this.#runs.size + this.#repeats.size;
  }

  /** Whether a job that waits in the queue may be dispatched now. */
  mayDispatch(entry: PooledJob, band: Band): boolean {
    const { need } = entry.job;
    if (this.#mayShare(entry) && this.#former.hasRoomFor(entry, band)) return true;
    return !this.#repeats.waitsFor(need.model) && this.#parts.slots.hasFree({ need, band });
  }

  /** Gives a job a slot, or a place in a batch. @throws Error if there is neither */
  dispatch(entry: PooledJob, band: Band): void {
    const isShared = this.#mayShare(entry);
    if (isShared && this.#former.hasRoomFor(entry, band)) return this.#former.join(entry, band);
    const slot = this.#parts.slots.take({ need: entry.job.need, band });
    if (slot === null) throw new Error('a job was dispatched without a free slot');
    const most = isShared ? this.#mostIn(slot) : 1;
    if (most > 1) this.#former.begin(entry, band, { slot, most });
    else this.#call(slot, [entry]);
  }

  /** The owner of a dispatched job needs it no more; the job is settled. */
  letGo(entry: PooledJob): void {
    if (this.#repeats.remove(entry)) {
      this.#parts.onDone(entry);
      this.#parts.onFree();
      return;
    }
    const run = this.#runOf.get(entry);
    // A batch that forms leaves out what is settled by then.
    if (run === undefined) return;
    this.#runOf.delete(entry);
    run.letGo(entry);
    if (run.isCancelled && !this.#cancelledMs.has(run))
      this.#cancelledMs.set(run, this.#parts.now());
  }

  /** Gives free slots to jobs whose call must be repeated, and gives up those that waited too long. */
  repeat(): void {
    for (const repeat of this.#repeats.all()) {
      const end = this.#judge(repeat);
      if (end === 'wait') continue;
      this.#repeats.remove(repeat.entry);
      if (typeof end !== 'string') {
        this.#parts.settle(repeat.entry, end);
        this.#parts.onDone(repeat.entry);
      }
    }
  }

  /** Whether batches may form with it. */
  #mayShare({ job, priority, lostCalls }: PooledJob): boolean {
    const { max_item_seconds: longest } = this.#parts.audio.accumulator;
    return (
      priority === 'BATCH' &&
      job.work.kind === 'file' &&
      job.durationSec <= longest &&
      lostCalls === 0
    );
  }

  #mostIn({ worker, model }: Slot): number {
    return worker.link.models.get(model)?.maxBatch ?? 1;
  }

  #call(slot: Slot, all: readonly PooledJob[]): void {
    const { slots, newBatchId, onCall, onDone, now } = this.#parts;
    const entries = all.filter(({ isSettled }) => !isSettled);
    for (const entry of all) if (entry.isSettled) onDone(entry);
    const [only] = entries;
    if (only === undefined) {
      slots.release(slot);
      this.#parts.onFree();
      return;
    }
    const id = entries.length > 1 ? newBatchId() : only.job.requestId;
    const run = new SlotRun(slot, id, entries, {
      onOutcome: (entry, end) => this.#onOutcome(entry, end, slot.worker.link),
      onEnded: (isCertain) => this.#onEnded(run, isCertain),
    });
    this.#runs.set(run, now());
    for (const entry of entries) {
      this.#runOf.set(entry, run);
      onCall(entry);
    }
    run.start(this.timeoutMs(entries));
  }

  /** The time limit of a call for some jobs, ms. */
  timeoutMs(entries: readonly PooledJob[]): number {
    const { scheduler, tts } = this.#parts.audio;
    if (entries[0]?.job.work.kind === 'speech') return tts.timeout;
    const durationSec = entries.reduce((sum, { job }) => sum + job.durationSec, 0);
    const { min_timeout: minTimeoutMs, timeout_factor: timeoutFactor } = scheduler;
    return callTimeoutMs(durationSec, { minTimeoutMs, timeoutFactor });
  }

  #onOutcome(entry: PooledJob, end: JobCallEnd, link: AudioWorkerLink): void {
    const { settle, onDone } = this.#parts;
    this.#runOf.delete(entry);
    entry.lastWorker = link;
    const next = end.ok ? outcomeOf(end.result) : afterFailure(entry, end.failure);
    if (!end.ok && end.failure.kind === 'exhausted') this.#markFull(link);
    if (next === 'repeat') return this.#repeats.add(this.#repeatOf(entry));
    settle(entry, next);
    onDone(entry);
  }

  #markFull(link: AudioWorkerLink): void {
    this.#parts.slots.workers.find((worker) => worker.link === link)?.markFull();
  }

  #repeatOf(entry: PooledJob): Repeat {
    const nowMs = this.#parts.now();
    const { queue_ttl: ttlMs } = this.#parts.audio.fair_request_queue;
    const sameWorkerAtMs = nowMs + SAME_WORKER_MS;
    return { entry, sameWorkerAtMs, expiresMs: nowMs + ttlMs, unservedSinceMs: null };
  }

  /** A job that got a slot is `called`; an outcome ends it. */
  #judge(repeat: Repeat): 'wait' | 'called' | JobOutcome {
    const { slots, now, audio } = this.#parts;
    const { entry, sameWorkerAtMs } = repeat;
    const nowMs = now();
    const code = entry.refusals > 0 ? 'backend_exhausted' : 'backend_lost';
    if (nowMs >= repeat.expiresMs) return faultOf(code, true);
    const { need, band } = entry.job;
    if (slots.isServed(need)) repeat.unservedSinceMs = null;
    else repeat.unservedSinceMs ??= nowMs;
    const waitedMs = nowMs - (repeat.unservedSinceMs ?? nowMs);
    if (waitedMs >= audio.fair_request_queue.no_backend_ttl) return faultOf(code, true);
    const avoid = entry.lastWorker;
    const slot = slots.take({ need, band, avoid });
    if (slot === null) return 'wait';
    if (slot.worker.link === avoid && nowMs < sameWorkerAtMs) {
      slots.release(slot);
      return 'wait';
    }
    this.#call(slot, [entry]);
    return 'called';
  }

  #onEnded(run: SlotRun, isCertain: boolean): void {
    const { slots, now, setTimer, audio, onCallEnded, onDone, onFree } = this.#parts;
    const nowMs = now();
    const ms = nowMs - (this.#runs.get(run) ?? nowMs);
    const cancelledMs = this.#cancelledMs.get(run) ?? null;
    this.#runs.delete(run);
    this.#cancelledMs.delete(run);
    for (const entry of run.letGone) onDone(entry);
    onCallEnded(run, { ms, cancelMs: cancelledMs === null ? null : nowMs - cancelledMs });
    if (isCertain) slots.release(run.slot);
    else {
      slots.quarantine(run.slot);
      setTimer(() => {
        slots.release(run.slot);
        onFree();
      }, audio.scheduler.cancel_quarantine);
    }
    onFree();
  }
}

function outcomeOf(result: (JobCallEnd & { ok: true })['result']): JobOutcome {
  return result === null ? { kind: 'spoken' } : { kind: 'transcript', transcription: result };
}
