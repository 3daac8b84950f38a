import { NightshiftError } from '../errors';
import { isJsonObject } from '../openai/json-object';

/** An uploaded file that requests of a batch name (docs/design/journal.md#files-of-requests). */
export interface InputFile {
  /** Of its object. */
  readonly key: string;
  readonly bytes: number;
  /** As it was uploaded. */
  readonly filename: string;
}

/** All files that requests of a batch name, by id. */
export type InputFiles = ReadonlyMap<string, InputFile>;

/** The bytes of `files.json`: `{"version":1,"files":{id:{"key","size","name"}}}`. */
export function encodeInputFiles(files: InputFiles): Buffer {
  const entries = [...files].map(([id, { key, bytes, filename }]) => {
    return [id, { key, size: bytes, name: filename }] as const;
  });
  return Buffer.from(`${JSON.stringify({ version: 1, files: Object.fromEntries(entries) })}\n`);
}

/** The inverse of {@link encodeInputFiles}. @throws plan_unreadable */
export function parseInputFiles(bytes: Uint8Array): InputFiles {
  const value = parseJson(bytes);
  const files = isJsonObject(value) && value['version'] === 1 ? value['files'] : null;
  if (!isJsonObject(files)) throw unreadable();
  return new Map(Object.entries(files).map(([id, file]) => [id, inputFileOf(file)]));
}

function inputFileOf(value: unknown): InputFile {
  if (!isJsonObject(value)) throw unreadable();
  const { key, size, name } = value;
  if (typeof key !== 'string' || typeof size !== 'number' || typeof name !== 'string') {
    throw unreadable();
  }
  return { key, bytes: size, filename: name };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw unreadable(cause);
  }
}

function unreadable(cause?: unknown): NightshiftError {
  return new NightshiftError('plan_unreadable', 'files.json is damaged', { cause });
}
