import { embedAnswer } from '../../core/openai/answer';
import { embedSpeech, embedTranscript } from '../../core/openai/audio-answer';
import type { EmbeddedAnswer } from '../../core/openai/embedded-answer';
import { isJsonObject } from '../../core/openai/json-object';
import { formFields, inlineRecording, mediaTypeOf } from '../../core/openai/recording-form';
import type { InputFiles } from '../../core/plan/input-files';
import type { BackendAnswer, BackendRequest } from '../../inference/backend';
import type { ObjectStore } from '../../storage/object-store';
import { onePiece, RecordingForm } from './recording-form';

/** What one try of a line sends, and how its answer becomes part of a result line. */
export interface LineBody extends Pick<BackendRequest, 'accept'> {
  readonly content: BackendRequest['body'];
  /** Memory that it takes while it is sent, bytes. */
  readonly memoryBytes: number;
  /** Why it could not be read to its end; null if it was, or if its try ended before. */
  readonly failure: Error | null;
  /** The answer as JSON; null if that is larger than `limits.max_answer_bytes`. */
  embed(answer: BackendAnswer): EmbeddedAnswer | null;
  /** Releases what it reads from. Call it at the end of the try. */
  close(): void;
}

/** Makes the requests of one chunk. */
export interface LineBodies {
  /**
   * The request of a line with this id.
   * @param body the bytes of its member `body`, which stay unchanged until the end of the try
   * @returns null if it names a file that there is not
   */
  of(body: Buffer, lineId: string): LineBody | null;
}

const NOTHING_TO_CLOSE = { failure: null, close: () => undefined };

/** Requests with JSON, whose bytes are sent as they are, and whose answers are embedded as they are. */
export const JSON_BODIES: LineBodies = { of: (body) => new JsonBody(body) };

/** A class: as an object that is spread together, it took 4 % of a line's time. */
class JsonBody implements LineBody {
  readonly accept = undefined;
  readonly failure = null;
  readonly content: Buffer;

  constructor(content: Buffer) {
    this.content = content;
  }

  get memoryBytes(): number {
    return this.content.length;
  }

  embed({ status, body }: BackendAnswer): EmbeddedAnswer {
    return embedAnswer(status, body);
  }

  close(): void {
    // There is nothing to close.
  }
}

/** What clients of audio accept: transcripts may be text, and speech is audio. */
const ANYTHING = '*/*';

/** Requests for speech: their bytes are sent as they are, and audio in their answers becomes base64. */
export function speechBodies(model: string, maxAnswerBytes: number): LineBodies {
  return {
    of: (body) => {
      const { response_format: format } = membersOf(body);
      const requested = { model, format: typeof format === 'string' ? format : null };
      return {
        ...NOTHING_TO_CLOSE,
        content: body,
        accept: ANYTHING,
        memoryBytes: body.length,
        embed: (answer) => embedSpeech(answer, requested, maxAnswerBytes),
      };
    },
  };
}

/** Memory of a form whose file is streamed: the buffers of the store and of the connection. */
const STREAMED_BYTES = 256 * 1024;

/** Requests with a recording, which are sent as forms (docs/design/recordings.md#forms). */
export function recordingBodies(store: Pick<ObjectStore, 'stream'>, files: InputFiles): LineBodies {
  return {
    of: (body, lineId) => {
      const members = membersOf(body);
      const recording = recordingOf(members, { store, files });
      if (recording === null) return null;
      const { memoryBytes, ...part } = recording;
      const form = new RecordingForm({ fields: formFields(members), ...part, boundary: lineId });
      return {
        content: form,
        accept: ANYTHING,
        memoryBytes: Math.max(STREAMED_BYTES, memoryBytes),
        embed: embedTranscript,
        get failure() {
          return form.failure;
        },
        close: () => form.close(),
      };
    },
  };
}

/** Where recordings of a batch are. */
interface Recordings {
  readonly store: Pick<ObjectStore, 'stream'>;
  readonly files: InputFiles;
}

/** The recording that a body names. Ingestion has checked that it names exactly one. */
function recordingOf(members: ReturnType<typeof membersOf>, { store, files }: Recordings) {
  const { file_id: fileId, file_data: data, filename } = members;
  if (typeof data === 'string') {
    const inline = inlineRecording(data, String(filename));
    const { bytes, ...part } = inline;
    const read = () => onePiece(bytes);
    return { part, bytes: bytes.length, read, memoryBytes: data.length + bytes.length };
  }
  const file = files.get(String(fileId));
  if (file === undefined) return null;
  const part = { filename: file.filename, contentType: mediaTypeOf(file.filename) };
  const read = () => store.stream(file.key);
  return { part, bytes: file.bytes, read, memoryBytes: 0 };
}

function membersOf(body: Buffer): Readonly<Record<string, unknown>> {
  const value = JSON.parse(body.toString('utf8')) as unknown;
  return isJsonObject(value) ? value : {};
}
