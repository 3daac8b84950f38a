/*
 * Reads header text in linear time. A client chooses this text, and the process has one thread: a
 * regular expression that backtracks over blanks would stop every other client.
 */

/** A header value without the spaces and tabs around it (RFC 9110 §5.5); `trim` removes more than those. */
export function trimBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

/**
 * The parameters of a header value, `; name=value; name="value"`, by name in lower case. The first of a
 * repeated name counts. A value with unbalanced quotes is read up to the next semicolon.
 */
export function headerParameters(text: string): Map<string, string> {
  const found = new Map<string, string>();
  let at = text.indexOf(';');
  while (at >= 0 && at < text.length) {
    const nameEnd = endOfName(text, at + 1);
    const name = trimBlanks(text.slice(at + 1, nameEnd)).toLowerCase();
    let value = '';
    if (text[nameEnd] === '=') [value, at] = valueAt(text, skipBlanks(text, nameEnd + 1));
    else at = nameEnd;
    if (name !== '' && !found.has(name)) found.set(name, value);
  }
  return found;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Position of the `=` or `;` after a name, or the end of the text. */
function endOfName(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== '=' && text[at] !== ';') at++;
  return at;
}

/** A value and the position of the semicolon after it, or the end of the text. */
function valueAt(text: string, from: number): [value: string, end: number] {
  if (text[from] === '"') {
    const close = closingQuote(text, from + 1);
    const end = skipBlanks(text, close + 1);
    if (close > 0 && (end === text.length || text[end] === ';')) {
      return [text.slice(from + 1, close).replaceAll('\\"', '"'), end];
    }
  }
  const semicolon = text.indexOf(';', from);
  const end = semicolon < 0 ? text.length : semicolon;
  return [unquoted(trimBlanks(text.slice(from, end))), end];
}

/** Position of the first quote that no backslash escapes; -1 if there is none. */
function closingQuote(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

function unquoted(text: string): string {
  const from = text.startsWith('"') ? 1 : 0;
  const to = text.length > from && text.endsWith('"') ? text.length - 1 : text.length;
  return text.slice(from, to);
}
