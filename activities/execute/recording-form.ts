import { Readable } from 'node:stream';
import { NightshiftError } from '../../core/errors';
import {
  recordingForm,
  type FormField,
  type RecordingPart,
} from '../../core/openai/recording-form';
import type { RequestForm } from '../../inference/backend';

/** A form, and where its recording comes from. */
export interface RecordingFormOptions {
  readonly fields: readonly FormField[];
  readonly part: RecordingPart;
  /** Length of the recording. */
  readonly bytes: number;
  /** Opens the recording. */
  read(): Readable;
  readonly boundary: string;
}

/** What is handed to the connection at once, at most. */
const PIECE_BYTES = 64 * 1024;

/** A form on its way out, for one try. Its recording is read as fast as the connection takes it. */
export class RecordingForm implements RequestForm {
  readonly contentType: string;
  readonly bytes: number;
  /** Why the recording could not be read. */
  failure: Error | null = null;
  readonly #options: RecordingFormOptions;
  readonly #head: Buffer;
  readonly #tail: Buffer;
  #recording: Readable | null = null;

  constructor(options: RecordingFormOptions) {
    const { fields, part, boundary, bytes } = options;
    const { contentType, head, tail } = recordingForm(fields, part, boundary);
    this.#options = options;
    this.#head = head;
    this.#tail = tail;
    this.contentType = contentType;
    this.bytes = head.length + bytes + tail.length;
  }

  async *open(): AsyncGenerator<Uint8Array> {
    yield* inPieces(this.#head);
    try {
      yield* this.#readRecording();
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
    yield this.#tail;
  }

  /** Stops reading the recording. */
  close(): void {
    this.#recording?.destroy();
  }

  async *#readRecording(): AsyncGenerator<Uint8Array> {
    let leftBytes = this.#options.bytes;
    this.#recording = this.#options.read();
    for await (const chunk of this.#recording as AsyncIterable<Buffer>) {
      leftBytes -= chunk.length;
      if (leftBytes < 0) break;
      yield* inPieces(chunk);
    }
    if (leftBytes === 0) return;
    const message = `a recording has another length than the ${this.#options.bytes} bytes of its file`;
    throw new NightshiftError('object_store_failed', message);
  }
}

/** A recording that is in memory. */
export function onePiece(bytes: Buffer): Readable {
  return Readable.from([bytes], { objectMode: true });
}

function* inPieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
