import { NightshiftError, isNightshiftError } from '../../core/errors';
import { type FormEntry, formEntries, readEntry } from '../../http/multipart/form-entries';
import { malformed } from '../../http/multipart/malformed';
import type { ObjectStore } from '../../storage/object-store';
import { unknownParameter, wrongType } from '../requests/faults';
import { createUploadInspector, type UploadFacts } from './upload-inspector';

/** A form whose file has been written to the object store. */
export interface ReceivedForm {
  /** Plain fields by name. */
  readonly fields: ReadonlyMap<string, string>;
  /** Null if the form had no file. */
  readonly file: ReceivedFile | null;
}

/** The one file of a form. */
export interface ReceivedFile extends UploadFacts {
  /** As the client named it. */
  readonly filename: string;
}

export interface ReceiveOptions {
  readonly store: ObjectStore;
  /** Name of the one field that is a file. */
  readonly field: string;
  /** Names of the fields that are plain text. */
  readonly texts: ReadonlySet<string>;
  /** Where the file's bytes go; a key that no other request uses. */
  readonly objectKey: string;
  readonly maxFileBytes: number;
  readonly maxLineBytes: number;
  readonly allowance: ByteAllowance;
  /** Called with each part of the file's bytes before it is stored. */
  onBytes?(chunk: Buffer): void;
}

/** How many bytes the client may still store. This may be less than the limit for one file. */
export interface ByteAllowance {
  readonly bytes: number;
  /** The error for a longer file. */
  exceeded(): NightshiftError;
}

const MAX_FIELD_BYTES = 64 * 1024;

/**
 * Reads a form to its end and streams its file into the store. Fields may come after the file, so the
 * caller can check them only afterwards. If this throws, no object is left behind.
 *
 * @throws invalid_request if the form is malformed or ends early, repeats a field, or its file is too
 *   long @throws object_store_failed
 */
export async function receiveForm(
  source: AsyncIterable<Buffer>,
  boundary: string,
  options: ReceiveOptions,
): Promise<ReceivedForm> {
  const fields = new Map<string, string>();
  let file: ReceivedFile | null = null;
  try {
    for await (const entry of formEntries(source, boundary)) {
      if (entry.filename === null) {
        if (fields.has(entry.name)) throw wrongType(entry.name, 'a single value');
        fields.set(entry.name, (await readEntry(entry, MAX_FIELD_BYTES)).toString('utf8'));
      } else if (options.texts.has(entry.name)) {
        throw wrongType(entry.name, 'a text, not a file');
      } else if (entry.name !== options.field) {
        throw unknownParameter(entry.name);
      } else if (file !== null) {
        throw secondFile(options.field);
      } else {
        file = { filename: entry.filename, ...(await storeFile(entry, options)) };
      }
    }
    return { fields, file };
  } catch (error) {
    if (file !== null) await discard(options);
    throw error;
  }
}

/** Deletes the object of a form that was refused after it had been read. */
export async function discard(options: Pick<ReceiveOptions, 'store' | 'objectKey'>): Promise<void> {
  await options.store.delete(options.objectKey);
}

/**
 * Deletes the object of a request that failed with `error`, unless its row may have been committed. An
 * object that then belongs to no row is deleted by the sweep (docs/design/ends.md#sweep).
 */
export async function discardAfter(
  error: unknown,
  place: Pick<ReceiveOptions, 'store' | 'objectKey'>,
): Promise<void> {
  if (!isNightshiftError(error, 'commit_unknown')) await discard(place);
}

async function storeFile(entry: FormEntry, options: ReceiveOptions): Promise<UploadFacts> {
  const inspector = createUploadInspector(options.maxLineBytes);
  let fault: unknown;
  async function* inspected(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of entry.body) {
        inspector.update(chunk);
        if (inspector.bytes > options.maxFileBytes) throw fileTooLong(options.maxFileBytes);
        if (inspector.bytes > options.allowance.bytes) throw options.allowance.exceeded();
        options.onBytes?.(chunk);
        yield chunk;
      }
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  // The store may wrap an error of its source; the client must get the original error.
  const result = await options.store
    .putIfAbsent(options.objectKey, inspected())
    .catch((error: unknown) => {
      throw fault ?? error;
    });
  if (result === 'exists') throw new NightshiftError('internal', `${options.objectKey} exists`);
  return inspector.finish();
}

/** The 400 of a file over the limit (docs/design/api-contract.md#file-size). */
export function fileTooLong(maxBytes: number): NightshiftError {
  return new NightshiftError('invalid_request', tooLongText(maxBytes));
}

/** The message for a file over the limit, used with 400 and 413. */
export function tooLongText(maxBytes: number): string {
  return `The file is larger than the limit of ${Math.floor(maxBytes / 1024 ** 2)} MB.`;
}

function secondFile(field: string): NightshiftError {
  const { message } = malformed(`it has more than one part '${field}'`);
  return new NightshiftError('invalid_request', message, { param: field });
}
