import type { Transcription } from '../../../core/audio/transcription';
import { PRIORITY } from '../../../core/chunks/priority';
import { BAND } from '../../../core/dispatch/queue/band';
import { AudioPool, type AudioPoolParts } from '../../../gateway/audio/audio-pool';
import type { EndedCall, EndedJob } from '../../../gateway/audio/audio-observer';
import type { AudioJob, AudioJobEnd, AudioJobOwner } from '../../../gateway/audio/job';
import { audioPoolSettings } from '../../../gateway/audio/pool-settings';
import type {
  AudioWorkerLink,
  BatchCall,
  CallEnd,
  CallFailure,
  FileCall,
  RunningCall,
  SpeechCall,
} from '../../../inference/audio/audio-calls';
import { audioSection } from '../../../platform/config-audio';
import { configSchema } from '../../../platform/config-schema';
import type { WireModel } from '../../../proto/audio-messages';

/** A call that a fake worker got. */
export interface FakeCall {
  readonly kind: 'file' | 'batch' | 'speech';
  readonly worker: FakeLink;
  readonly id: string;
  readonly timeoutMs: number;
  readonly call: FileCall | BatchCall | SpeechCall;
  isAborted: boolean;
  /** Ends it well; recordings of a batch that have no outcome yet get one. */
  finish(): void;
  fail(kind: CallFailure['kind']): void;
  isOver: boolean;
}

export const MODEL: WireModel = {
  ...{ name: 'm', tasks: [], languages: [], contentTypes: [], segments: true, words: true },
  ...{ deltas: true, maxBatch: 1, streaming: false, partials: false, serverVad: false },
  ...{ sampleRatesHz: [], voices: [], speechFormats: [] },
};

const TRANSCRIPT: Transcription = {
  ...{ text: 'ok', language: null, durationSec: 7, segments: [], words: [], usage: null },
};

/** A worker whose calls end when the test says so. */
export class FakeLink implements AudioWorkerLink {
  readonly address: string;
  status: AudioWorkerLink['status'] = 'serving';
  readonly reason = null;
  readonly engine = 'fake';
  models = new Map([['m', MODEL]]);
  slots = 1;
  maxStreams = 0;
  healthReplies = 1;
  hasNamedModels = true;
  readonly calls: FakeCall[] = [];
  readonly cancels: string[] = [];
  /** Whether it acknowledges a Cancel; `never` lets it hang until `cancelTimedOut`. */
  acknowledges: boolean | 'never' = true;
  #hanging: ((acknowledged: boolean) => void)[] = [];

  constructor(address: string, changes: Partial<FakeLink> = {}) {
    this.address = address;
    Object.assign(this, changes);
  }

  get isReady(): boolean {
    return this.status === 'serving';
  }

  /** Its calls that run. */
  get running(): FakeCall[] {
    return this.calls.filter(({ isOver }) => !isOver);
  }

  transcribe(call: FileCall): RunningCall<Transcription> {
    return this.#open<Transcription>('file', call, () => TRANSCRIPT);
  }

  transcribeBatch(call: BatchCall): RunningCall<null> {
    return this.#open<null>('batch', call, () => {
      call.items.forEach((_, index) => call.onItem(index, { ok: true, result: TRANSCRIPT }));
      return null;
    });
  }

  synthesize(call: SpeechCall): RunningCall<null> {
    return this.#open<null>('speech', call, () => null);
  }

  cancel(requestId: string): Promise<boolean> {
    this.cancels.push(requestId);
    if (this.acknowledges !== 'never') return Promise.resolve(this.acknowledges);
    return new Promise((resolve) => this.#hanging.push(resolve));
  }

  cancelTimedOut(): void {
    for (const resolve of this.#hanging.splice(0)) resolve(false);
  }

  #open<T>(
    kind: FakeCall['kind'],
    call: FileCall | BatchCall | SpeechCall,
    result: () => T,
  ): RunningCall<T> {
    let settle: (end: CallEnd<T>) => void = () => undefined;
    const ended = new Promise<CallEnd<T>>((resolve) => (settle = resolve));
    const end = (made: () => CallEnd<T>): void => {
      if (fake.isOver) return;
      fake.isOver = true;
      settle(made());
    };
    const failure = (of: CallFailure['kind']) => ({ kind: of, message: 'because' });
    const fake: FakeCall = {
      ...{ kind, call, worker: this, id: call.requestId, timeoutMs: call.timeoutMs },
      ...{ isAborted: false, isOver: false },
      finish: () => end(() => ({ ok: true, result: result() })),
      fail: (of) => end(() => ({ ok: false, failure: failure(of) })),
    };
    this.calls.push(fake);
    return {
      ended,
      abort: () => {
        fake.isAborted = true;
        fake.fail('aborted');
      },
    };
  }
}

/** A job, and what its owner was told. */
export interface Submitted {
  readonly job: AudioJob;
  readonly told: string[];
  readonly ends: AudioJobEnd[];
}

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** An audio pool with fake workers and a clock of its own. */
export class AudioScene {
  nowMs = 1_000_000;
  readonly pool: AudioPool;
  readonly links: readonly FakeLink[];
  readonly endedJobs: EndedJob[] = [];
  readonly endedCalls: EndedCall[] = [];
  readonly cancelMs: number[] = [];
  readonly errors: unknown[] = [];
  readonly submitted: Submitted[] = [];
  #timers: Timer[] = [];
  #batches = 0;

  constructor(
    links: readonly FakeLink[],
    settings: object = {},
    parts: Partial<AudioPoolParts> = {},
  ) {
    this.links = links;
    const audio = audioSection.parse({ workers: [{ address: 'w:1' }], ...settings });
    const { gateway } = configSchema.parse({});
    this.pool = new AudioPool({
      ...{ links, audio, now: () => this.nowMs },
      settings: audioPoolSettings(gateway, audio),
      observer: {
        onCall: (call) => void this.endedCalls.push(call),
        onCancelled: (ms) => void this.cancelMs.push(ms),
        onEnded: (job) => void this.endedJobs.push(job),
      },
      defer: (run) => queueMicrotask(run),
      setTimer: (run, ms) => {
        const timer = { atMs: this.nowMs + ms, run };
        this.#timers.push(timer);
        return () => {
          this.#timers = this.#timers.filter((one) => one !== timer);
        };
      },
      weightOf: () => 1,
      newBatchId: () => `batch_${++this.#batches}`,
      onError: (error) => this.errors.push(error),
      ...parts,
    });
  }

  /** Hands over a recording of 10 s, of band `standard` and tenant `t`. */
  submit(changes: Partial<AudioJob> & { model?: string; task?: 'transcribe' | 'translate' } = {}) {
    const { model = 'm', task = 'transcribe', ...others } = changes;
    const need = {
      ...{ model, task, language: '', contentType: 'audio/wav', segments: false },
      ...{ words: false, voice: '', speechFormat: '' },
    };
    const job: AudioJob = {
      ...{
        requestId: `req_${this.submitted.length}`,
        tenant: 't',
        band: BAND.standard,
        priority: PRIORITY.normal,
      },
      ...{ need, cost: 10, bytes: 0, durationSec: 10, deadlineMs: Infinity, metadata: {} },
      work: { kind: 'file', options: {} as never, audio: { size: 0, read: noBytes } },
      ...others,
    };
    const submitted: Submitted = { job, told: [], ends: [] };
    const owner: AudioJobOwner = {
      onDispatched: () => void submitted.told.push('dispatched'),
      onDelta: (text) => void submitted.told.push(`delta ${text}`),
      onAudio: () => void submitted.told.push('audio'),
      onSettled: (end) => {
        submitted.ends.push(end);
        submitted.told.push(end.kind === 'fault' ? end.code : end.kind);
      },
    };
    this.submitted.push(submitted);
    this.pool.submit(job, owner);
    return submitted;
  }

  speak(changes: Partial<AudioJob> = {}): Submitted {
    const request = {} as never;
    return this.submit({ band: BAND.critical, work: { kind: 'speech', request }, ...changes });
  }

  /** Lets promises settle. */
  async settle(): Promise<void> {
    for (let i = 0; i < 30; i++) await Promise.resolve();
  }

  /** Lets time pass, with a tick every 100 ms. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    let tickMs = this.nowMs + 100;
    while (this.nowMs < untilMs) {
      const due = Math.min(untilMs, tickMs, ...this.#timers.map(({ atMs }) => atMs));
      this.nowMs = Math.max(this.nowMs, due);
      for (const timer of this.#timers.filter(({ atMs }) => atMs <= this.nowMs)) {
        this.#timers = this.#timers.filter((one) => one !== timer);
        timer.run();
      }
      if (this.nowMs >= tickMs) {
        this.pool.tick();
        tickMs = this.nowMs + 100;
      }
      await this.settle();
    }
  }

  /** All calls that run. */
  get running(): FakeCall[] {
    return this.links.flatMap((link) => link.running);
  }
}

async function* noBytes(): AsyncGenerator<Buffer> {
  yield* [];
}
