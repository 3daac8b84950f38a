import type { Transcription, TranscriptSegment } from '../../core/audio/transcription';
import type {
  WireFileOptions,
  WireModel,
  WireSpeechChunk,
  WireSpeechRequest,
} from '../../proto/audio-messages';

/** The bytes of a recording, which every attempt at a call reads from the beginning. */
export interface AudioSource {
  readonly size: number;
  /** Pieces of at most 256 KiB. An error ends the call. */
  read(): AsyncIterable<Buffer>;
}

/**
 * Why a call has no result (docs/design/audio-calls.md#failed-calls). `lost`: UNAVAILABLE, FAILED_PRECONDITION, a CANCELLED
 * that is not ours, a lost connection, or too many pings. `aborted`: by {@link RunningCall.abort}.
 */
export interface CallFailure {
  readonly kind:
    'lost' | 'timeout' | 'exhausted' | 'invalid' | 'not_found' | 'failed' | 'source' | 'aborted';
  /** For clients if `invalid` or `not_found`: the worker's words, at most 500 characters. */
  readonly message: string;
}

/** How a call ended. */
export type CallEnd<T> =
  { readonly ok: true; readonly result: T } | { readonly ok: false; readonly failure: CallFailure };

/** A call that runs. */
export interface RunningCall<T> {
  /** Settled once, when the call has really ended: its slot is free then. It never rejects. */
  readonly ended: Promise<CallEnd<T>>;
  /** Ends the local call. It is idempotent. */
  abort(): void;
}

/** What all calls have. */
export interface CallOptions {
  /** `x-request-id` and the id that Cancel names. */
  readonly requestId: string;
  /** From now on, ms. */
  readonly timeoutMs: number;
  /** `traceparent` and the like, by name. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** A recording to transcribe or translate. */
export interface FileCall extends CallOptions {
  readonly options: WireFileOptions;
  readonly audio: AudioSource;
  onDelta?(text: string): void;
  onSegment?(segment: TranscriptSegment): void;
}

/** Recordings that go in one call. */
export interface BatchCall extends CallOptions {
  readonly items: readonly Pick<FileCall, 'options' | 'audio'>[];
  /** The outcome of an item, once for each that has one. What has none when the call ends has the call's failure. */
  onItem(index: number, end: CallEnd<Transcription>): void;
}

/** A text to speak. */
export interface SpeechCall extends CallOptions {
  readonly request: WireSpeechRequest;
  /** A piece of audio. The next one is not read before the promise settles. */
  onChunk(chunk: WireSpeechChunk): void | Promise<void>;
}

/** What a worker is doing. `connecting`: it never answered. `unreachable`: it stopped answering. */
export type WorkerStatus =
  'connecting' | 'loading' | 'serving' | 'draining' | 'error' | 'unreachable';

/** One audio worker: what it says of itself, and calls to it. Nothing here counts slots. */
export interface AudioWorkerLink {
  /** `host:port`. */
  readonly address: string;
  readonly status: WorkerStatus;
  /** Why it is not serving; null if it is. */
  readonly reason: string | null;
  /** Whether it may get new calls: `serving`. */
  readonly isReady: boolean;
  readonly engine: string;
  /** What it serves, by name, within the `models` of the settings. Kept while it is unreachable. */
  readonly models: ReadonlyMap<string, WireModel>;
  /** At least 1, within the `slots` of the settings. */
  readonly slots: number;
  readonly maxStreams: number;
  /** Number of the Health replies so far. */
  readonly healthReplies: number;
  /** Whether it has said once what it serves. */
  readonly hasNamedModels: boolean;
  transcribe(call: FileCall): RunningCall<Transcription>;
  transcribeBatch(call: BatchCall): RunningCall<null>;
  synthesize(call: SpeechCall): RunningCall<null>;
  /**
   * Sends Cancel for a file, batch or speech call; true if the worker acknowledges it within `cancel_timeout`. It never
   * rejects.
   */
  cancel(requestId: string): Promise<boolean>;
}
