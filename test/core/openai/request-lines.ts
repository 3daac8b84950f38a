import fc from 'fast-check';

/** Texts of JSON strings, in pieces: lengths around multiples of 16, all kinds of escapes, and characters of 1 to 4 bytes. */
const PIECES = [
  ...['', 'a', 'word ', 'é', '你', '😀', '\u2028', '\u007f'],
  ...['x'.repeat(15), 'y'.repeat(16), 'z'.repeat(17), '0123456789'.repeat(30)],
  ...['\\"', '\\\\', '\\/', '\\n', '\\t', '\\b', '\\f', '\\r', '\\u00e9', '\\u0000'],
  ...['\\ud83d\\ude00', '\\ud800', '\\udc00', '{', '[', ']}', ',', ':'],
];
const BAD_PIECES = ['"', '\\', '\\x', '\\u12g4', '\\u12', '\t', '\n', '\u0000', '\u001f'];
const SCALARS = ['null', 'true', 'false', '0', '-1', '12.5', '1e9', '-0.0E+1', '{}', '[]', '""'];
const BAD_SCALARS = ['01', '1.', '.5', '-', '+1', '1e', 'nul', 'truE', 'NaN', '', '{', ']', "'a'"];
const BLANKS = ['', '', '', '', '', '', ' ', '\t', '  ', '\r'];
const BAD_BLANKS = ['\u00a0', '\u0000', '\u000b', ',', ','];

/** Mostly the first; each of the second about once in a hundred values. */
function mostly(good: readonly string[], bad: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 120, arbitrary: fc.constantFrom(...good) },
    { weight: 1, arbitrary: fc.constantFrom(...bad) },
  );
}

const blank = mostly(BLANKS, BAD_BLANKS);
const string = fc
  .array(mostly(PIECES, BAD_PIECES), { maxLength: 6 })
  .map((pieces) => `"${pieces.join('')}"`);
const scalar = fc.oneof(mostly(SCALARS, BAD_SCALARS), string);

/** Members in any order; sometimes one of them twice, or missing. */
function object(members: Readonly<Record<string, fc.Arbitrary<string>>>): fc.Arbitrary<string> {
  const all = Object.entries(members).map(([name, value]) => fc.tuple(key(name), value));
  const usual = fc.tuple(...all).map((list) => list);
  const some = fc.subarray(all).chain((list) => fc.tuple(...list));
  const twice = fc
    .tuple(
      usual,
      fc.constantFrom(...all).chain((one) => one),
    )
    .map(([list, one]) => [...list, one]);
  return fc
    .oneof({ weight: 30, arbitrary: usual }, some, twice)
    .chain((list) => fc.tuple(fc.shuffledSubarray(list, { minLength: list.length }), blank, blank))
    .map(
      ([list, a, b]) =>
        `{${list.map(([name, value]) => a + name + b + ':' + a + value + b).join(',')}}`,
    );
}

/** A name in quotes, sometimes with an escape or another name. */
function key(name: string): fc.Arbitrary<string> {
  const escaped = `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`;
  return fc.oneof(
    { weight: 60, arbitrary: fc.constant(`"${name}"`) },
    fc.constantFrom(escaped, `"${name}s"`, `"${name.slice(0, -1)}"`, '"\\u0064"'),
  );
}

function array(element: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(element, { maxLength: 4 }), blank, blank)
    .map(([list, a, b]) => `[${a}${list.join(b + ',' + a)}${b}]`);
}

/** Any JSON of some levels. */
const value: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 3, arbitrary: scalar },
    array(tie('value')),
    object({ a: tie('value'), content: tie('value'), messages: scalar }),
  ),
})).value;
const part = fc.oneof(object({ type: fc.constant('"text"'), text: string }), value);
const content = fc.oneof({ weight: 3, arbitrary: string }, array(part), value);
const role = mostly(
  ['"system"', '"developer"', '"user"', '"assistant"'],
  ['null', '"sys\\u0074em"', '7', '["system"]'],
);
const message = fc.oneof(
  { weight: 12, arbitrary: object({ role, content }) },
  object({ role }),
  value,
);
const messages = fc.oneof({ weight: 8, arbitrary: array(message) }, value);
const input = fc.oneof(string, array(string), array(mostly(['1', '-2', '30'], ['x'])), messages);
const model = mostly(
  ['"m"', '"m"', '"model-b"', '"é"'],
  ['""', '"m\\u006d"', '7', 'null', `"${'n'.repeat(300)}"`],
);
const customId = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: 0, max: 999_999 }).map((id) => `"${id}"`) },
  mostly(
    ['"a"', '"é"', '"\\u0061"'],
    ['""', `"${'é'.repeat(300)}"`, '1', 'null', `"${'c'.repeat(513)}"`],
  ),
);

const MEMBERS: Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<string>>>>> = {
  '/v1/chat/completions': { model, messages },
  '/v1/responses': { model, input, instructions: content },
  '/v1/embeddings': { model, input },
  '/v1/moderations': { input },
  '/v1/audio/speech': { model, input: string, voice: string, stream_format: string },
  '/v1/audio/transcriptions': { model, file_id: string },
  '/v1/images/edits': { model, prompt: string, images: value },
};
const FURTHER = {
  ...{ tools: array(value), stream: mostly(['false', 'null'], ['true', '1']), prompt: content },
  ...{ instructions: content, temperature: scalar, messages, input, metadata: value },
};

/** The endpoints for which {@link requestLine} makes lines. */
export const ENDPOINTS = Object.keys(MEMBERS);

/** A request for an endpoint in any spelling of JSON. Most are accepted. */
export function requestLine(endpoint: string): fc.Arbitrary<Buffer> {
  const members = MEMBERS[endpoint] ?? {};
  const body = fc
    .subarray(Object.entries(FURTHER), { maxLength: 2 })
    .chain((further) => object({ ...Object.fromEntries(further), ...members }));
  const url = mostly(
    [`"${endpoint}"`],
    ['"/v1/other"', `"${endpoint.replaceAll('/', '\\/')}"`, 'null'],
  );
  const method = mostly(['"POST"'], ['"post"', '"POS\\u0054"', 'null', '"POSTS"']);
  const line = fc.oneof(
    { weight: 20, arbitrary: object({ custom_id: customId, method, url, body }) },
    object({ custom_id: customId, method, url, body, body_2: value }),
    object({ custom_id: customId, method, url, body: fc.oneof(scalar, value) }),
    value,
  );
  return fc
    .tuple(line, blank, blank, damages)
    .map(([text, before, after, list]) => damaged(Buffer.from(before + text + after), list));
}

/** What is done to bytes: at a share of the length, some of them are replaced by others. */
type Damage = readonly [at: number, removed: number, put: Buffer];

const damage: fc.Arbitrary<Damage> = fc.tuple(
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.integer({ min: 0, max: 3 }),
  fc.oneof(
    fc
      .constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', ' ', '0', 'e')
      .map((text) => Buffer.from(text)),
    fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom('c0af', 'eda080', 'f4908080', 'e4bda0', 'c3', '80', 'efbbbf')
      .map((hex) => Buffer.from(hex, 'hex')),
  ),
);
const damages = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Damage[]>([]) },
  fc.array(damage, { minLength: 1, maxLength: 2 }),
);

function damaged(line: Buffer, list: readonly Damage[]): Buffer {
  return list.reduce((bytes, [share, removed, put]) => {
    const at = Math.floor(share * bytes.length);
    return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + removed)]);
  }, line);
}

/** Strings that are values. */
const TEXTS = /"(?:[^"\\]|\\.)*"(?!\s*:)/g;
/** Another text for one of them. */
const replacement = fc.tuple(
  fc.nat(30),
  fc.oneof({ weight: 3, arbitrary: string }, role, customId),
);

/** Lines that are written alike: some texts in each are others, and some of the lines are damaged. */
export function similarLines(endpoint: string, maxLength: number): fc.Arbitrary<Buffer[]> {
  const change = fc.tuple(
    fc.array(replacement, { maxLength: 3 }),
    fc.oneof({ weight: 6, arbitrary: fc.constant<Damage[]>([]) }, damages),
  );
  const changes = fc.array(change, { minLength: 1, maxLength, size: 'max' });
  return fc.tuple(requestLine(endpoint), changes).map(([line, list]) =>
    list.map(([replaced, damage]) => {
      const text = replaced.reduce((json, [number, put]) => {
        const found = [...json.matchAll(TEXTS)];
        const { 0: old = '', index = 0 } = found[number % found.length] ?? {};
        return json.slice(0, index) + put + json.slice(index + old.length);
      }, line.toString());
      return damaged(Buffer.from(text), damage);
    }),
  );
}
