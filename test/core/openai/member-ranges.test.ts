import fc from 'fast-check';
import { readLineFields } from '../../../core/openai/member-ranges';

interface Line {
  body: unknown;
  custom_id: string;
}

/** JSON text of `value`, with the most unusual blanks and escapes that JSON allows. */
function spelled(value: unknown, odd: () => number): string {
  const blank = () => [' ', '\t', '\r', '', ''][odd() % 5] ?? '';
  if (typeof value === 'string') return spelledString(value, odd);
  if (Array.isArray(value)) {
    const items = value.map((item) => blank() + spelled(item, odd) + blank());
    return `[${items.join(',') || blank()}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return members(Object.entries(value), odd);
}

function members(entries: [string, unknown][], odd: () => number): string {
  const blank = () => [' ', '\t', '\r\r', '', ''][odd() % 5] ?? '';
  const parts = entries.map(
    ([key, value]) =>
      `${blank()}${spelledString(key, odd)}${blank()}:${blank()}${spelled(value, odd)}${blank()}`,
  );
  return `{${parts.join(',') || blank()}}`;
}

function spelledString(text: string, odd: () => number): string {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    const plain = JSON.stringify(text.charAt(i)).slice(1, -1);
    const hex = text.charCodeAt(i).toString(16).padStart(4, '0');
    out += odd() % 7 === 0 || /[\ud800-\udfff]/.test(text.charAt(i)) ? `\\u${hex}` : plain;
  }
  return `"${out}"`;
}

const value = fc.jsonValue({ maxDepth: 4 });
const strange = fc.string({ unit: fc.constantFrom('\\', '"', '{', '}', ',', 'é', '\u2028', 'a') });
const member = fc.oneof(
  fc.tuple(fc.constant('body'), fc.oneof(value, strange)),
  fc.tuple(fc.constant('custom_id'), fc.oneof(strange, fc.string({ unit: 'binary' }))),
  fc.tuple(fc.oneof(fc.constantFrom('method', 'Body', 'custom_i', ''), strange), value),
);

describe('the body and custom_id of a line', () => {
  it('are those that JSON.parse finds, despite repeated members, white space and escaped keys', () => {
    fc.assert(
      fc.property(
        fc.array(member, { maxLength: 8 }),
        fc.infiniteStream(fc.nat(1000)),
        (entries, stream) => {
          const odd = () => Number(stream.next().value);
          const all: [string, unknown][] = [['body', {}], ['custom_id', 'x'], ...entries];
          const line = Buffer.from(members(all, odd));
          const parsed = JSON.parse(line.toString()) as Line;
          const parts = readLineFields(line);
          expect(parts.customId).toBe(parsed.custom_id);
          const body = line.subarray(parts.bodyStart, parts.bodyEnd).toString();
          expect(body).toBe(body.trim());
          expect(JSON.parse(body)).toEqual(parsed.body);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('are exact byte ranges beside non-ASCII text and long strings', () => {
    const body = `{"model":"m","text":"${'ü\\"\\\\'.repeat(40)}","n":9007199254740993}`;
    const line = Buffer.from(
      `  {"custom_id":"ä\\u0062","method":"POST","body": ${body} ,"url":"/"} `,
    );
    const { bodyStart, bodyEnd, customId } = readLineFields(line);
    expect(line.subarray(bodyStart, bodyEnd).toString()).toBe(body);
    expect(customId).toBe('äb');
  });

  it('must both be present', () => {
    expect(() => readLineFields(Buffer.from('{"custom_id":"a"}'))).toThrow(RangeError);
    expect(() => readLineFields(Buffer.from('{}'))).toThrow(RangeError);
    expect(() => readLineFields(Buffer.from('{"body":{"a":"'))).toThrow(RangeError);
  });
});
