import { headerParameters, trimBlanks } from '../header-text';
import { FormReader } from './form-reader';
import { malformed } from './malformed';
import { type PartHeader, parsePartHeader } from './part-header';

/** One part of a form, in the order of the wire. */
export interface FormPart extends PartHeader {
  /** The part's bytes. What is not read when the next part is asked for is skipped. */
  readonly body: AsyncIterable<Buffer>;
}

const MAX_PARTS = 100;
const MAX_BOUNDARY_CHARS = 200;
const NOTHING = Buffer.alloc(0);

/**
 * Parts of a `multipart/form-data` body (RFC 7578), pulled: bytes are taken from `source` only when
 * the reader asks for them, so a slow store slows the sender down and memory stays flat. A boundary is
 * looked for with the native `indexOf`, which keeps up with any network.
 *
 * @throws invalid_request where the body is no form, ends early, or has too many parts
 */
export async function* formParts(
  source: AsyncIterable<Buffer>,
  boundary: string,
): AsyncGenerator<FormPart> {
  const form = new FormReader(source, boundary);
  try {
    await form.skipPastDelimiter();
    for (let count = 1; !form.isAtEnd; count++) {
      if (count > MAX_PARTS) throw malformed(`it has more than ${MAX_PARTS} parts`);
      const header = parsePartHeader(await form.readHeader());
      yield { ...header, body: form.body() };
      await form.skipPastDelimiter();
    }
    await form.hearOut();
  } finally {
    await form.letGo();
  }
}

/**
 * The boundary of a `multipart/form-data` content type; null for any other type.
 *
 * @throws invalid_request if the boundary is too long: the form could not be read with a part of it
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

/** All bytes of a part that is meant to be short. @throws invalid_request above `maxBytes` */
export async function readPart(part: FormPart, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of part.body) {
    length += chunk.length;
    if (length > maxBytes) throw malformed(`the field ${part.name} is too long`);
    chunks.push(chunk);
  }
  return chunks.length === 0 ? NOTHING : Buffer.concat(chunks);
}
