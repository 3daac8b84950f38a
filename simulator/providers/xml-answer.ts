import type { ProviderAnswer } from './answer';

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';

/** An XML answer. @param text without the declaration */
export function xmlAnswer(text: string, status = 200): ProviderAnswer {
  return { status, contentType: 'application/xml', bytes: Buffer.from(DECLARATION + text) };
}

/** A text as the content of an element. */
export function escapedXml(text: string): string {
  return text.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
