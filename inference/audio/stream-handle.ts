import type { ClientDuplexStream, StatusObject } from '@grpc/grpc-js';
import { status as CODE } from '@grpc/grpc-js';
import type {
  WireAudioFrame,
  WireStreamOptions,
  WireTranscriptEvent,
} from '../../proto/audio-messages';
import type { CallFailure } from './audio-calls';
import { failureOf } from './failures';

/** A worker to which live streams can be opened. */
export interface StreamWorker {
  /** Begins a call without a time limit. @throws Error if the worker is closed */
  openStream(
    metadata: Readonly<Record<string, string>>,
  ): ClientDuplexStream<WireAudioFrame, WireTranscriptEvent>;
  /** Sends Cancel. It never rejects. */
  cancelStream(sessionId: string): Promise<boolean>;
}

/** How a stream ended. */
export type StreamEnd =
  { readonly ok: true } | { readonly ok: false; readonly failure: CallFailure };

const CANCELLED: StreamEnd = {
  ok: false,
  failure: { kind: 'aborted', message: 'The stream was cancelled.' },
};

/**
 * A live stream of audio to a worker, and of events back (docs/design/realtime.md#the-stream-handle). Nothing of it is
 * repeated: whoever owns it decides what becomes of a session whose stream is lost.
 */
export class StreamHandle {
  /** Settled once, when the call has ended. It never rejects. */
  readonly ended: Promise<StreamEnd>;
  readonly #worker: StreamWorker;
  readonly #sessionId: string;
  readonly #call: ClientDuplexStream<WireAudioFrame, WireTranscriptEvent>;
  #isCancelled = false;
  #isOver = false;
  #hasSentLast = false;

  private constructor(worker: StreamWorker, options: WireStreamOptions, metadata: Metadata) {
    this.#worker = worker;
    this.#sessionId = options.sessionId;
    this.#call = worker.openStream(metadata);
    // The error says the same as the status. Without a listener, it would end the process.
    this.#call.on('error', () => undefined);
    this.ended = new Promise((resolve) => {
      this.#call.once('status', (status: StatusObject) => resolve(this.#end(status)));
    });
    this.configure(options);
  }

  /** Opens a stream. Its first frame has the options. @throws Error if the worker is closed */
  static open(worker: StreamWorker, options: WireStreamOptions, metadata: Metadata): StreamHandle {
    return new StreamHandle(worker, options, metadata);
  }

  /** Whether a frame would not only lengthen the queue before the connection. */
  get isWritable(): boolean {
    return !this.#isOver && !this.#hasSentLast && !this.#call.writableNeedDrain;
  }

  /** Calls `listener` whenever the stream becomes writable again. */
  onDrain(listener: () => void): void {
    this.#call.on('drain', listener);
  }

  /** Other language or prompt from here on. */
  configure(options: WireStreamOptions): void {
    this.#write({ options });
  }

  /** Sends audio. It is queued even if the stream is not writable, and dropped after the end. */
  send(audio: Buffer): void {
    this.#write({ audio });
  }

  /** The turn ends here. */
  commit(): void {
    this.#write({ commit: true });
  }

  /** The events of the worker, until the call ends. They can be read once; reading slowly slows the worker down. */
  async *events(): AsyncGenerator<WireTranscriptEvent, void, undefined> {
    try {
      for await (const event of this.#call) yield event as WireTranscriptEvent;
    } catch {
      // `ended` has the reason.
    }
  }

  /** Says that no more audio follows. The worker sends what is left and ends the call. */
  close(): void {
    if (this.#hasSentLast || this.#isOver) return;
    this.#write({ last: true });
    this.#hasSentLast = true;
    this.#call.end();
  }

  /** Sends Cancel and ends the call at once, without waiting for the reply. Settles when the call has ended. */
  async cancel(): Promise<void> {
    if (!this.#isOver && !this.#isCancelled) {
      this.#isCancelled = true;
      void this.#worker.cancelStream(this.#sessionId);
      this.#call.cancel();
    }
    await this.ended;
  }

  #write(frame: WireAudioFrame): void {
    if (!this.#isOver && !this.#hasSentLast) this.#call.write(frame);
  }

  #end(status: StatusObject): StreamEnd {
    this.#isOver = true;
    if (this.#isCancelled) return CANCELLED;
    return status.code === CODE.OK ? { ok: true } : { ok: false, failure: failureOf(status) };
  }
}

type Metadata = Readonly<Record<string, string>>;
