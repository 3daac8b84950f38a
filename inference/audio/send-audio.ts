import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { AudioSource } from './audio-calls';
import type { CallRun } from './running-call';

/** Largest piece of a recording in one message. */
const CHUNK_BYTES = 256 * 1024;

/** Sends the messages of a call, each after the one before was written: the rest of a recording stays in its file. */
export class MessageSender<Message> {
  readonly #call: ClientDuplexStream<Message, unknown>;
  readonly #run: CallRun<unknown>;

  constructor(call: ClientDuplexStream<Message, unknown>, run: CallRun<unknown>) {
    this.#call = call;
    this.#run = run;
  }

  /** Returns false if the call has ended. */
  async send(message: Message): Promise<boolean> {
    if (this.#run.isOver) return false;
    const written = new Promise<void>((resolve) => {
      // An error of a write is the end of the call, whose status says more.
      this.#call.write(message, () => resolve());
    });
    await Promise.race([written, this.#run.ended]);
    return !this.#run.isOver;
  }

  /** Sends a recording in pieces. Returns false if the call has ended. @throws what the source throws */
  async sendAudio(audio: AudioSource, wrap: (chunk: Buffer) => Message): Promise<boolean> {
    for await (const piece of audio.read()) {
      for (let at = 0; at < piece.length; at += CHUNK_BYTES) {
        if (!(await this.send(wrap(piece.subarray(at, at + CHUNK_BYTES))))) return false;
      }
    }
    return !this.#run.isOver;
  }
}
