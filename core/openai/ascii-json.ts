const BEYOND_ASCII = /[^\x00-\x7f]/;
const ALL_BEYOND_ASCII = /[^\x00-\x7f]/g;

/**
 * The same JSON with every non-ASCII code unit as `\uxxxx` (contract §7): readers that split lines at
 * U+2028, U+2029 or U+0085 see one line. Outside strings valid JSON is ASCII, so tokens stay as they are.
 */
export function escapeNonAscii(json: string): string {
  if (!BEYOND_ASCII.test(json)) return json;
  return json.replace(ALL_BEYOND_ASCII, escaped);
}

/** JSON text of a string, ASCII only; lone surrogates survive as escapes. */
export function asciiJsonString(text: string): string {
  return escapeNonAscii(JSON.stringify(text));
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
