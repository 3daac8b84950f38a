import { Accumulator } from '../../core/audio/accumulator';
import type { AudioNeed } from '../../core/audio/audio-need';
import { LatencyTracker } from '../../core/audio/latency-tracker';
import { missingOffer } from '../../core/audio/model-offer';
import type { DropCode } from '../../core/dispatch/drop-codes';
import type { PoolSettings } from '../../core/dispatch/pool/pool-settings';
import { RequestQueueController } from '../../core/dispatch/pool/request-queue-controller';
import type { Defer } from '../../core/dispatch/pool/sliced-task';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { QueuedRequest, type RequestOwner } from '../../core/dispatch/queue/queued-request';
import type { AudioWorkerLink } from '../../inference/audio/audio-calls';
import type { AudioConfig } from '../../platform/config-audio';
import type { AudioObserver } from './audio-observer';
import { AudioDispatch } from './dispatch';
import type { AudioJob, AudioJobOwner, AudioRefusal, AudioScheduler } from './job';
import { faultOf, type JobOutcome, PooledJob, type SchedulerPriority } from './pooled-job';
import { SlotTable } from './slot-table';
import { UnservedModels } from './unserved-models';

/** What an {@link AudioPool} is made of. */
export interface AudioPoolParts {
  readonly links: readonly AudioWorkerLink[];
  readonly settings: PoolSettings;
  readonly audio: Pick<AudioConfig, 'scheduler' | 'accumulator' | 'tts' | 'fair_request_queue'>;
  readonly observer: AudioObserver;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly defer: Defer;
  /** Returns a function that cancels the timer. */
  setTimer(run: () => void, ms: number): () => void;
  weightOf(tenant: string, model: string): number;
  /** A new id for a call of several requests. */
  newBatchId(): string;
  readonly onError: (error: unknown) => void;
}

/**
 * Schedules audio requests on the slots of audio workers (docs/design/audio-scheduling.md). Its driver calls `tick`
 * every 100 ms, and `refresh` when a worker says something new.
 */
export class AudioPool implements AudioScheduler {
  readonly controller: RequestQueueController;
  readonly slots: SlotTable;
  readonly #parts: AudioPoolParts;
  readonly #accumulator: Accumulator<PooledJob>;
  readonly #dispatch: AudioDispatch;
  readonly #latency: LatencyTracker<PooledJob>;
  readonly #unserved: UnservedModels;
  /** All jobs that are not settled. */
  readonly #open = new Map<AudioJob, PooledJob>();
  readonly #jobOf = new WeakMap<QueuedRequest, PooledJob>();
  #nextCleanupMs: number;
  #isDraining = false;

  constructor(parts: AudioPoolParts) {
    const { links, settings, audio, now, defer, setTimer, weightOf, onError } = parts;
    const { flush_interval: flushIntervalMs, max_batch_size: maxBatchSize } = audio.accumulator;
    this.#parts = parts;
    this.slots = new SlotTable(links);
    this.#latency = new LatencyTracker({ ttlMs: audio.scheduler.latency_ttl, now });
    this.#unserved = new UnservedModels(audio.fair_request_queue.no_backend_ttl);
    this.#nextCleanupMs = now() + audio.scheduler.cleanup_interval;
    this.#accumulator = new Accumulator({
      ...{ flushIntervalMs, maxBatchSize, mode: audio.accumulator.mode, setTimer },
      flush: (entries) => entries.forEach((entry) => this.#enqueue(entry)),
    });
    this.#dispatch = this.#createDispatch();
    this.controller = new RequestQueueController(settings, {
      ...{ now, defer, weightOf, onError },
      mayDispatch: (request) => this.#dispatch.mayDispatch(this.#of(request), request.band),
    });
    this.refresh();
  }

  get models(): readonly string[] {
    return [...new Set(this.#parts.links.flatMap(({ models }) => [...models.keys()]))];
  }

  get isComplete(): boolean {
    return this.#parts.links.every(({ hasNamedModels }) => hasNamedModels);
  }

  get readyWorkers(): number {
    return this.#parts.links.filter(({ isReady }) => isReady).length;
  }

  /** Requests without a slot, in the accumulator or the queue, by their priority on arrival. */
  get waiting(): Readonly<Record<SchedulerPriority, number>> {
    const waiting = { REALTIME: 0, BATCH: 0 };
    for (const { priority, wasDispatched } of this.#open.values()) {
      if (!wasDispatched) waiting[priority]++;
    }
    return waiting;
  }

  /** When the oldest of {@link waiting} came; null if there is none. */
  get oldestArrivals(): Readonly<Record<SchedulerPriority, number | null>> {
    const oldest: Record<SchedulerPriority, number | null> = { REALTIME: null, BATCH: null };
    // In the order of their arrival.
    for (const { priority, wasDispatched, arrivedMs } of this.#open.values()) {
      if (!wasDispatched) oldest[priority] ??= arrivedMs;
    }
    return oldest;
  }

  /** Speech requests that are not settled. */
  get speaking(): number {
    return [...this.#open.values()].filter(({ job }) => job.work.kind === 'speech').length;
  }

  refusal(need: AudioNeed): AudioRefusal | null {
    let refusal: AudioRefusal | null = null;
    for (const { models } of this.#parts.links) {
      const offer = models.get(need.model);
      const missing = offer === undefined ? null : missingOffer(offer, need);
      if (offer !== undefined && missing === null) return null;
      refusal ??= missing;
    }
    return refusal;
  }

  sendsDeltas(model: string): boolean {
    const { links } = this.#parts;
    return links.some(({ isReady, models }) => isReady && models.get(model)?.deltas === true);
  }

  retryAfterSec(band: Band): number {
    return this.controller.retryAfterSec(band);
  }

  submit(job: AudioJob, owner: AudioJobOwner): void {
    const entry = new PooledJob(job, owner, this.#parts.now());
    const { queue_ttl: ttlMs } = this.#parts.audio.fair_request_queue;
    this.#open.set(job, entry);
    this.#latency.start(entry, ttlMs + this.#dispatch.timeoutMs([entry]));
    if (this.#isDraining) this.#settle(entry, faultOf('shutting_down', false));
    else if (this.#mayAccumulate(entry)) {
      entry.wasAdmitted = true;
      this.#accumulator.add(entry, this.#bucketOf(entry));
    } else this.#enqueue(entry);
  }

  cancel(tenant: string, requestId: string): boolean {
    const isMeant = ({ job }: PooledJob) =>
      job.requestId === requestId && job.tenant === tenant && job.band !== BAND.sheddable;
    const found = [...this.#open.values()].filter(isMeant);
    for (const entry of found) this.#giveUp(entry, 'cancelled');
    return found.length > 0;
  }

  abandon(job: AudioJob, code: DropCode): void {
    const entry = this.#open.get(job);
    if (entry !== undefined) this.#giveUp(entry, code);
  }

  /** To be called every 100 ms. */
  tick(): void {
    const nowMs = this.#parts.now();
    this.#dropUnserved(nowMs);
    this.refresh();
    this.controller.tick();
    if (nowMs < this.#nextCleanupMs) return;
    this.#nextCleanupMs = nowMs + this.#parts.audio.scheduler.cleanup_interval;
    this.#latency.cleanup();
  }

  /** A worker may have said something new, or a slot is free. */
  refresh(): void {
    this.#dispatch.repeat();
    const { readyWorkers: readyBackends } = this;
    const limit = this.#capacity();
    this.controller.updatePool({ readyBackends, limit, sheddableCap: Infinity });
  }

  /** What is collected goes to the queue, nothing is collected any more, and new requests are refused. */
  beginDrain(): void {
    this.#isDraining = true;
    this.#accumulator.flushAll();
  }

  /** Drops what waits in the queue. */
  closeQueue(): void {
    this.controller.close();
  }

  /** Gives up every request that is left. */
  giveUpAll(): void {
    for (const entry of [...this.#open.values()]) this.#giveUp(entry, 'shutting_down');
  }

  /** Requests that wait, and calls that run. */
  get load(): { readonly waiting: number; readonly running: number } {
    const { REALTIME, BATCH } = this.waiting;
    return { waiting: REALTIME + BATCH, running: this.#dispatch.busy };
  }

  #createDispatch(): AudioDispatch {
    const { audio, now, setTimer, newBatchId, observer } = this.#parts;
    return new AudioDispatch({
      ...{ slots: this.slots, audio, now, setTimer, newBatchId },
      onCall: (entry) => this.#latency.grpcStarted(entry),
      settle: (entry, outcome) => this.#settle(entry, outcome),
      onDone: (entry) => this.#complete(entry),
      onCallEnded: ({ entries }, { ms, cancelMs }) => {
        const [first] = entries;
        if (first === undefined) return;
        const { job, priority } = first;
        const items = entries.length;
        this.#tell(() => observer.onCall({ task: job.need.task, priority, ms, items }));
        if (cancelMs !== null) this.#tell(() => observer.onCancelled(cancelMs));
      },
      onFree: () => this.refresh(),
    });
  }

  #of(request: QueuedRequest): PooledJob {
    const entry = this.#jobOf.get(request);
    if (entry === undefined) throw new Error('a request of another pool');
    return entry;
  }

  /** Only requests that may share a call with others, if a worker takes several. */
  #mayAccumulate({ job, priority }: PooledJob): boolean {
    const { max_item_seconds: longest } = this.#parts.audio.accumulator;
    if (priority === 'REALTIME' || job.work.kind !== 'file' || job.durationSec > longest) {
      return false;
    }
    return this.#parts.links.some(({ isReady, models }) => {
      return isReady && (models.get(job.need.model)?.maxBatch ?? 1) > 1;
    });
  }

  /** Requests of different bands never share a call. */
  #bucketOf({ group, job }: PooledJob): string {
    const { mode } = this.#parts.audio.accumulator;
    return mode === 'single' ? job.need.model : `${job.band} ${group}`;
  }

  #enqueue(entry: PooledJob): void {
    const { job } = entry;
    const owner: RequestOwner = {
      dispatched: (request) => this.#onDispatched(entry, request),
      dropped: (request, code) => {
        // What never was in the queue was refused on arrival.
        entry.wasAdmitted ||= request.queuedAtMs > 0;
        this.#settle(entry, faultOf(code, false));
      },
    };
    const request = new QueuedRequest(
      {
        ...{ tenant: job.tenant, model: job.need.model, id: job.requestId },
        ...{ band: job.band, priority: job.priority, cost: job.cost, bytes: job.bytes },
        ...(Number.isFinite(job.deadlineMs) && { deadlineMs: job.deadlineMs }),
      },
      owner,
    );
    entry.request = request;
    this.#jobOf.set(request, entry);
    this.controller.tryEnqueue(request);
  }

  #onDispatched(entry: PooledJob, { band }: QueuedRequest): void {
    entry.wasAdmitted = true;
    entry.wasDispatched = true;
    this.#latency.dequeued(entry);
    // The slot is taken first: what the owner does may call the pool.
    this.#dispatch.dispatch(entry, band);
    if (!entry.isSettled) this.#tell(() => entry.owner.onDispatched());
  }

  /** Settles a job whose owner or operator needs it no more, and frees what it has. */
  #giveUp(entry: PooledJob, code: DropCode): void {
    this.#accumulator.remove(entry);
    // A request in the queue settles its job when it is dropped.
    if (entry.request !== null && this.controller.drop(entry.request, code)) return;
    this.#settle(entry, faultOf(code, entry.wasDispatched));
    if (entry.wasDispatched) this.#dispatch.letGo(entry);
  }

  /** Nothing of a job is in flight any more. */
  #complete({ request, job, audioSec }: PooledJob): void {
    if (request !== null) this.controller.onRequestComplete(request, audioSec ?? job.cost);
  }

  #settle(entry: PooledJob, outcome: JobOutcome): void {
    if (entry.isSettled) return;
    entry.isSettled = true;
    this.#open.delete(entry.job);
    const latency = this.#latency.complete(entry);
    const { queueWaitMs: queueMs = 0, grpcTimeMs: workerMs = 0 } = latency ?? {};
    if (outcome.kind === 'transcript') entry.audioSec = audioSecOf(outcome);
    const { need } = entry.job;
    this.#tell(() =>
      this.#parts.observer.onEnded({
        ...{ priority: entry.priority, task: need.task, model: need.model, latency },
        ...{ outcome, audioSec: entry.audioSec ?? 0, wasAdmitted: entry.wasAdmitted },
      }),
    );
    this.#tell(() => entry.owner.onSettled({ ...outcome, queueMs, workerMs }));
  }

  #dropUnserved(nowMs: number): void {
    const waiting = [...this.#open.values()].filter(({ request }) => request?.state === 'queued');
    const isServed = (need: AudioNeed) => this.slots.isServed(need);
    for (const entry of this.#unserved.due(waiting, isServed, nowMs)) {
      this.#giveUp(entry, 'no_backends');
    }
  }

  /** How many requests may be in flight: all slots, each with as many as fit into one call. */
  #capacity(): number {
    let capacity = 0;
    for (const { isReady, slots, models } of this.#parts.links) {
      const most = Math.max(1, ...[...models.values()].map(({ maxBatch }) => maxBatch));
      if (isReady) capacity += slots * most;
    }
    return capacity;
  }

  /** Calls an owner or the observer: what they throw is reported, and changes nothing here. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#parts.onError(error);
    }
  }
}

function audioSecOf({ transcription }: JobOutcome & { kind: 'transcript' }): number {
  const { usage, durationSec } = transcription;
  return usage !== undefined && usage !== null && usage.audioSec > 0 ? usage.audioSec : durationSec;
}
