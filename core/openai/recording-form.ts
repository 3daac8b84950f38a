import { isJsonObject } from './json-object';

/** One field of a form: its name and its value as text. */
export type FormField = readonly [name: string, value: string];

/** How the part of a form that holds the recording describes it. */
export interface RecordingPart {
  readonly filename: string;
  /** A media type, such as `audio/wav`. */
  readonly contentType: string;
}

/** The bytes of a form around those of its recording. */
export interface FormFrame {
  readonly contentType: string;
  readonly head: Buffer;
  readonly tail: Buffer;
}

/** Members of `body` that name the recording. The part `file` takes their place. */
const SOURCE: ReadonlySet<string> = new Set(['file', 'url', 'file_id', 'file_data', 'filename']);
const ANY_TYPE = 'application/octet-stream';

/** Media types by the extension of a file name. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['aac', 'audio/aac'],
  ['flac', 'audio/flac'],
  ['m4a', 'audio/mp4'],
  ['mp3', 'audio/mpeg'],
  ['mp4', 'audio/mp4'],
  ['mpeg', 'audio/mpeg'],
  ['mpga', 'audio/mpeg'],
  ['oga', 'audio/ogg'],
  ['ogg', 'audio/ogg'],
  ['opus', 'audio/ogg'],
  ['wav', 'audio/wav'],
  ['webm', 'audio/webm'],
]);

/** The media type of a recording by the extension of its file name. */
export function mediaTypeOf(filename: string): string {
  const extension = /\.([a-z0-9]+)$/i.exec(filename)?.[1]?.toLowerCase() ?? '';
  return MEDIA_TYPES.get(extension) ?? ANY_TYPE;
}

/**
 * The fields of the form that a body stands for, in the order of its members: a list becomes one field for each
 * element, named with `[]` as OpenAI's SDKs do, an object becomes JSON, and everything else its text. Members that
 * are null, and those that name the recording, have no field.
 */
export function formFields(body: Readonly<Record<string, unknown>>): FormField[] {
  return Object.entries(body).flatMap(([name, value]): FormField[] => {
    if (SOURCE.has(name) || value === null) return [];
    if (!Array.isArray(value)) return [[name, textOf(value)]];
    const listName = name.endsWith('[]') ? name : `${name}[]`;
    return value.map((element): FormField => [listName, textOf(element)]);
  });
}

/**
 * The frame of a `multipart/form-data` body (RFC 7578) with the recording as its last part, so that a server has all
 * fields before it. A pure function: each try of a line sends the same bytes, and their number is known in advance.
 *
 * @param boundary at most 70 letters, digits and `_-`, which must not occur in a value or in the recording. An id that
 *   was drawn at random after these were uploaded does not.
 */
export function recordingForm(
  fields: readonly FormField[],
  part: RecordingPart,
  boundary: string,
): FormFrame {
  const start = `--${boundary}\r\nContent-Disposition: form-data; name=`;
  const parts = fields.map(([name, value]) => `${start}"${quotable(name)}"\r\n\r\n${value}\r\n`);
  const file = `${start}"file"; filename="${quotable(part.filename)}"\r\nContent-Type: ${part.contentType}\r\n\r\n`;
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    head: Buffer.from(parts.join('') + file),
    tail: Buffer.from(`\r\n--${boundary}--\r\n`),
  };
}

/** A recording that a request has in itself. */
export interface InlineRecording extends RecordingPart {
  readonly bytes: Buffer;
}

const DATA_URL = /^data:([^,;]*)(?:;[^,]*)?,/;
const MEDIA_TYPE = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/i;

/**
 * Decodes `file_data`: base64, or a data URL whose media type counts more than the file name.
 *
 * @param data as {@link checkAudio} has accepted it
 */
export function inlineRecording(data: string, filename: string): InlineRecording {
  const [prefix = '', stated = ''] = DATA_URL.exec(data) ?? [];
  const contentType = MEDIA_TYPE.test(stated) ? stated.toLowerCase() : mediaTypeOf(filename);
  return { bytes: Buffer.from(data.slice(prefix.length), 'base64'), filename, contentType };
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return isJsonObject(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);
}

/** As browsers write names in quotes (https://html.spec.whatwg.org/#multipart-form-data). */
function quotable(text: string): string {
  return text.replace(/"/g, '%22').replace(/\r/g, '%0D').replace(/\n/g, '%0A');
}
