const MAX_CHARS = 256;
/** Control characters, and lone surrogates, which UTF-8 cannot encode. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** The rule of {@link isTenantName}, for messages. */
export const TENANT_NAME_RULE =
  '1 to 256 characters without control characters or spaces around them';

/** Whether a text may be the name of a tenant. Names appear in headers, logs and search attributes. */
export function isTenantName(text: string): boolean {
  return text !== '' && text.trim() === text && [...text].length <= MAX_CHARS && !UNFIT.test(text);
}

/** A text as a header value: its UTF-8 bytes as one character each, as HTTP libraries expect. */
export function toHeaderText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a header that was read with one character per byte; null if it is not UTF-8. */
export function fromHeaderText(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}
