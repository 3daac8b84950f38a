const MAX_CHARS = 256;
/** Control characters, and halves of a character that no UTF-8 has. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** What {@link isTenantName} asks for, in words. */
export const TENANT_NAME_RULE =
  '1 to 256 characters without control characters or spaces around them';

/** Whether a text may be the name of a tenant: it travels in headers, logs and search attributes. */
export function isTenantName(text: string): boolean {
  return text !== '' && text.trim() === text && [...text].length <= MAX_CHARS && !UNFIT.test(text);
}

/** A text as the value of a header: its UTF-8, one character a byte, as HTTP libraries write it. */
export function toHeaderText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a header that was read with one character a byte; null where it is no UTF-8. */
export function fromHeaderText(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}
