import { NightshiftError, isNightshiftError } from '../../core/errors';
import type { ObjectStore } from '../../storage/object-store';
import { type FormPart, formParts, readPart } from '../../http/multipart/form-parts';
import { malformed } from '../../http/multipart/malformed';
import { unknownParameter, wrongType } from '../schemas/faults';
import { createUploadInspector, type UploadFacts } from './upload-inspector';

/** A form whose file lies in the object store. */
export interface ReceivedForm {
  /** Plain fields by name. */
  readonly fields: ReadonlyMap<string, string>;
  /** Null where the form had no file. */
  readonly file: ReceivedFile | null;
}

/** The one file of a form: its bytes are in the store, this is what they are. */
export interface ReceivedFile extends UploadFacts {
  /** As the client named it. */
  readonly filename: string;
}

export interface ReceiveOptions {
  readonly store: ObjectStore;
  /** Name of the one field that is a file. */
  readonly field: string;
  /** Names of the fields that are plain texts. */
  readonly texts: ReadonlySet<string>;
  /** Where its bytes go; nobody else knows this key. */
  readonly objectKey: string;
  readonly maxFileBytes: number;
  readonly maxLineBytes: number;
  readonly room: FileRoom;
}

/** How many bytes its owner has room for, which may be less than a file may have. */
export interface FileRoom {
  readonly bytes: number;
  /** What a longer file is answered with. */
  fault(): NightshiftError;
}

const MAX_FIELD_BYTES = 64 * 1024;

/**
 * Reads a form to its end and streams its file into the store as it comes: fields may come in any
 * order, so the bytes are judged when all is known. Whatever is thrown, no object is left behind.
 *
 * @throws invalid_request where the form is malformed or ends early, has anything twice, or a file that
 *   is too long @throws object_store_failed
 */
export async function receiveForm(
  source: AsyncIterable<Buffer>,
  boundary: string,
  options: ReceiveOptions,
): Promise<ReceivedForm> {
  const fields = new Map<string, string>();
  let file: ReceivedFile | null = null;
  try {
    for await (const part of formParts(source, boundary)) {
      if (part.filename === null) {
        if (fields.has(part.name)) throw wrongType(part.name, 'a single value');
        fields.set(part.name, (await readPart(part, MAX_FIELD_BYTES)).toString('utf8'));
      } else if (options.texts.has(part.name)) {
        throw wrongType(part.name, 'a text, not a file');
      } else if (part.name !== options.field) {
        throw unknownParameter(part.name);
      } else if (file !== null) {
        throw secondFile(options.field);
      } else {
        file = { filename: part.filename, ...(await storeFile(part, options)) };
      }
    }
    return { fields, file };
  } catch (error) {
    if (file !== null) await discard(options);
    throw error;
  }
}

/** Takes back the object of a form that was refused after it had been read. */
export async function discard(options: Pick<ReceiveOptions, 'store' | 'objectKey'>): Promise<void> {
  await options.store.delete(options.objectKey);
}

/**
 * Takes back the object of a request that failed with `error`, but not where its row may be there all
 * the same: what then belongs to nobody is swept.
 */
export async function discardAfter(
  error: unknown,
  place: Pick<ReceiveOptions, 'store' | 'objectKey'>,
): Promise<void> {
  if (!isNightshiftError(error, 'commit_unknown')) await discard(place);
}

async function storeFile(part: FormPart, options: ReceiveOptions): Promise<UploadFacts> {
  const inspector = createUploadInspector(options.maxLineBytes);
  let fault: unknown;
  async function* inspected(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of part.body) {
        inspector.update(chunk);
        if (inspector.bytes > options.maxFileBytes) throw fileTooLong(options.maxFileBytes);
        if (inspector.bytes > options.room.bytes) throw options.room.fault();
        yield chunk;
      }
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  // What the form did wrong is the answer, however the store words it.
  const result = await options.store
    .putIfAbsent(options.objectKey, inspected())
    .catch((error: unknown) => {
      throw fault ?? error;
    });
  if (result === 'exists') throw new NightshiftError('internal', `${options.objectKey} exists`);
  return inspector.finish();
}

/** The 400 of a file over the limit of an upload (contract §1.2). */
export function fileTooLong(maxBytes: number): NightshiftError {
  return new NightshiftError('invalid_request', tooLongText(maxBytes));
}

/** Says how large a file may be. */
export function tooLongText(maxBytes: number): string {
  return `The file is larger than the limit of ${Math.floor(maxBytes / 1024 ** 2)} MB.`;
}

function secondFile(field: string): NightshiftError {
  const { message } = malformed(`it has more than one part '${field}'`);
  return new NightshiftError('invalid_request', message, { param: field });
}
