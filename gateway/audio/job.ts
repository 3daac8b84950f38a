import type { AudioNeed } from '../../core/audio/audio-need';
import type { Transcription } from '../../core/audio/transcription';
import type { Priority } from '../../core/chunks/priority';
import type { DropCode, FaultCode } from '../../core/dispatch/drop-codes';
import type { Band } from '../../core/dispatch/queue/band';
import type { AudioSource } from '../../inference/audio/audio-calls';
import type {
  WireFileOptions,
  WireSpeechChunk,
  WireSpeechRequest,
} from '../../proto/audio-messages';

/** One admitted request of a REST route, as the audio pool schedules it. */
export interface AudioJob {
  readonly requestId: string;
  readonly tenant: string;
  /** Its band on arrival. */
  readonly band: Band;
  /** `normal` unless it is a batch line. */
  readonly priority: Priority;
  readonly need: AudioNeed;
  readonly work: FileWork | SpeechWork;
  /** Seconds of audio, or characters / 15. */
  readonly cost: number;
  /** Bytes of it in memory. */
  readonly bytes: number;
  /** Duration as the container states it, or an upper bound, s; 0 for speech. */
  readonly durationSec: number;
  /** The client gives up at this time of the gateway's clock, ms; infinity for never. */
  readonly deadlineMs: number;
  /** Headers that continue the trace in the worker. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A recording. The pool sets `requestId`. */
export interface FileWork {
  readonly kind: 'file';
  readonly options: WireFileOptions;
  readonly audio: AudioSource;
}

/** A text to speak. */
export interface SpeechWork {
  readonly kind: 'speech';
  readonly request: WireSpeechRequest;
}

/** Whose job it is. Nothing is called after `onSettled`, which is called exactly once. */
export interface AudioJobOwner {
  /** It got a slot. Called once, even if a call is repeated. */
  onDispatched(): void;
  /** Text of a file job whose `wantDeltas` is set. After the first one, its call is not repeated. */
  onDelta(text: string): void;
  /** Speech. The next piece is not read before the promise settles. After the first one, its call is not repeated. */
  onAudio(chunk: WireSpeechChunk): void | Promise<void>;
  onSettled(end: AudioJobEnd): void;
}

/** How long a job took. */
export interface AudioJobTimes {
  /** Accumulator and queue, ms. */
  readonly queueMs: number;
  /** In calls to workers, ms; 0 if it was never dispatched. */
  readonly workerMs: number;
}

/** How a job ended. */
export type AudioJobEnd = AudioJobTimes &
  (
    | { readonly kind: 'transcript'; readonly transcription: Transcription }
    | { readonly kind: 'spoken' }
    | {
        readonly kind: 'fault';
        /** `invalid` and `not_found` are the worker's 400 and 404, with its words in `message`. */
        readonly code: FaultCode | 'invalid' | 'not_found';
        /** Null for the usual text of the code. */
        readonly message: string | null;
        /** Whether a worker was called, so that the answer does not say that the request was dropped. */
        readonly wasDispatched: boolean;
      }
  );

/** Why no worker of a model can do what a request needs. */
export interface AudioRefusal {
  readonly param: string;
  readonly message: string;
}

/** The audio pool, as routes use it. */
export interface AudioScheduler {
  /** Names of the models that audio workers serve, or served. */
  readonly models: readonly string[];
  /** Whether every worker has said once what it serves, so that a model which is not in `models` has none. */
  readonly isComplete: boolean;
  /** Why no worker can do it, by what the workers said last; null if one can. */
  refusal(need: AudioNeed): AudioRefusal | null;
  /** Whether a ready worker of the model sends deltas. */
  sendsDeltas(model: string): boolean;
  /** Accumulates, queues or dispatches a job. Its owner may be called before this returns. */
  submit(job: AudioJob, owner: AudioJobOwner): void;
  /**
   * Cancels every job of a tenant with this id that is not a batch line (docs/design/audio-scheduling.md#cancellation). Each
   * settles as `cancelled` before this returns. Returns whether there was one.
   */
  cancel(tenant: string, requestId: string): boolean;
  /** As {@link cancel}, for this job alone, settled with `code`: `client_closed` if its client is gone. */
  abandon(job: AudioJob, code: DropCode): void;
  /** After how many seconds a refused client of `band` should try again. */
  retryAfterSec(band: Band): number;
  readonly readyWorkers: number;
}
