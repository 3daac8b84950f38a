import { headerParameters, trimBlanks } from '../headers/header-text';
import { type EntryHeader, parseEntryHeader } from './entry-header';
import { FormReader } from './form-reader';
import { malformed } from './malformed';

/** One entry of a form: a plain field or a file. */
export interface FormEntry extends EntryHeader {
  /** Where its bytes begin in the form. */
  readonly offset: number;
  /** Its bytes. Reading the next entry skips those that are unread. */
  readonly body: AsyncIterable<Buffer>;
}

const MAX_ENTRIES = 100;
const MAX_BOUNDARY_CHARS = 200;
const NOTHING = Buffer.alloc(0);

/**
 * The entries of a `multipart/form-data` body (RFC 7578) in the order of the wire. Bytes are taken from
 * `source` only when the caller reads them. So a slow object store slows the client down (back-pressure),
 * and memory does not grow with the size of the form.
 *
 * @throws invalid_request if the body is not a form, ends early, or has too many entries
 */
export async function* formEntries(
  source: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<FormEntry> {
  const form = new FormReader(source, boundary);
  try {
    await form.skipToDelimiter();
    for (let count = 1; !form.isAtEnd; count++) {
      if (count > MAX_ENTRIES) throw malformed(`it has more than ${MAX_ENTRIES} parts`);
      const header = parseEntryHeader(await form.readHeader());
      yield { ...header, offset: form.position, body: form.body() };
      await form.skipToDelimiter();
    }
    await form.readEpilogue();
  } finally {
    await form.close();
  }
}

/**
 * The boundary of a `multipart/form-data` content type; null for any other type.
 *
 * @throws invalid_request if the boundary is too long
 */
export function formBoundary(contentType: string | undefined): string | null {
  if (contentType === undefined) return null;
  const type = trimBlanks(contentType.split(';', 1)[0] ?? '').toLowerCase();
  if (type !== 'multipart/form-data') return null;
  const boundary = headerParameters(contentType).get('boundary') ?? '';
  if (boundary.length > MAX_BOUNDARY_CHARS) {
    throw malformed(
      `its boundary has ${boundary.length} characters; send one of at most ${MAX_BOUNDARY_CHARS}`,
    );
  }
  return boundary === '' ? null : boundary;
}

/** All bytes of an entry that is expected to be short. @throws invalid_request above `maxBytes` */
export async function readEntry(entry: FormEntry, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of entry.body) {
    length += chunk.length;
    if (length > maxBytes) throw malformed(`the field ${entry.name} is too long`);
    chunks.push(chunk);
  }
  return chunks.length === 0 ? NOTHING : Buffer.concat(chunks);
}
