import { headerParameters, trimBlanks } from '../headers/header-text';
import { malformed } from './malformed';

/** Name and file name of a form entry (RFC 7578 §4.2). */
export interface EntryHeader {
  readonly name: string;
  /** Null for a plain field. */
  readonly filename: string | null;
}

/** Encodings that leave the bytes unchanged (RFC 2045 §6). Others are refused, not decoded. */
const PLAIN_ENCODING = /^(?:7bit|8bit|binary)$/i;

/**
 * Reads `Content-Disposition` and refuses transfer encodings; all other header fields are ignored, the
 * content type included. Names are raw UTF-8. Browsers and SDKs write a double quote as `%22`, old
 * clients as `\"`. @throws invalid_request
 */
export function parseEntryHeader(header: Buffer): EntryHeader {
  const text = header.toString('utf8').replace(/\r\n[ \t]+/g, ' ');
  const fields = text.split('\r\n');
  const encoding = field(fields, 'content-transfer-encoding');
  if (encoding !== undefined && !PLAIN_ENCODING.test(encoding)) {
    throw malformed(`a part has the transfer encoding ${encoding}: send its bytes as they are`);
  }
  const disposition = field(fields, 'content-disposition');
  if (disposition === undefined || typeOf(disposition) !== 'form-data') {
    throw malformed('a part has no content-disposition');
  }
  const parameters = headerParameters(disposition);
  const name = unescaped(parameters.get('name') ?? '');
  if (name === '') throw malformed('a part has no name');
  return { name, filename: filenameOf(parameters) };
}

function field(fields: readonly string[], name: string): string | undefined {
  for (const line of fields) {
    const colon = line.indexOf(':');
    if (colon > 0 && trimBlanks(line.slice(0, colon)).toLowerCase() === name) {
      return trimBlanks(line.slice(colon + 1));
    }
  }
  return undefined;
}

function typeOf(disposition: string): string {
  return trimBlanks(disposition.split(';', 1)[0] ?? '').toLowerCase();
}

/** Null for a plain field. An entry with a file name is a file, even if the name cannot be decoded (''). */
function filenameOf(parameters: ReadonlyMap<string, string>): string | null {
  const extended = parameters.get('filename*');
  const plain = parameters.get('filename');
  if (extended === undefined && plain === undefined) return null;
  const decoded = extended === undefined ? null : decodeExtended(extended);
  return decoded ?? unescaped(plain ?? '');
}

function unescaped(name: string): string {
  return name.replace(/%22/g, '"').replace(/%0D/gi, '\r').replace(/%0A/gi, '\n');
}

/** Decodes `UTF-8''…` (RFC 5987), which some HTTP libraries send for names that are not ASCII. */
function decodeExtended(value: string): string | null {
  const [, charset = '', encoded = ''] = /^(utf-8|iso-8859-1)'[^']*'(.*)$/i.exec(value) ?? [];
  try {
    if (charset.toLowerCase() === 'utf-8') return decodeURIComponent(encoded);
    return charset === '' ? null : encoded.replace(/%([0-9a-f]{2})/gi, latin1);
  } catch {
    return null;
  }
}

function latin1(_escaped: string, digits: string): string {
  return String.fromCharCode(parseInt(digits, 16));
}
