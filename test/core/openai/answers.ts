import fc from 'fast-check';

/** Texts of answers, in pieces: lengths around multiples of 16, escapes, and characters of 1 to 4 bytes. */
const PIECES = [
  ...['', 'a', ' word', 'é', '\u0080', '\u07ff', '\u0800', '你好', '\ud7ff', '\ue000', '\ufffd'],
  ...['😀', '\u{10000}', '\u{10ffff}', '\u2028', '\u007f', '\ufeff'],
  ...['x'.repeat(15), 'y'.repeat(16), 'z'.repeat(17), '0123456789'.repeat(30)],
  ...['"', '\\', '/', '\n', '\t', '\u0000', '\ud800', '{', '[', ']}', ',', ':'],
];
/** Counts that the program reads, and those that it leaves to the parser. */
const COUNTS = ['0', '7', '57', '190', '999999999', 'null'];
const ODD_COUNTS = ['1.5', '-1', '-0', '1e3', '"5"', 'true', '{}', '[1]', '4294967296', '1e400'];
const COUNT_NAMES = [
  ...['prompt_tokens', 'completion_tokens', 'total_tokens', 'cached_tokens', 'reasoning_tokens'],
  ...['input_tokens', 'output_tokens', 'prompt_tokens_', 'audio_tokens'],
];
const DETAIL_NAMES = [
  ...['prompt_tokens_details', 'completion_tokens_details', 'input_tokens_details'],
  ...['output_tokens_details', 'completion_tokens_detail', 'completion_tokens_details_'],
];
/** What a mutation puts into an answer. */
const STRAY = [
  ...[0x00, 0x09, 0x0a, 0x20, 0x22, 0x2c, 0x2d, 0x30, 0x39, 0x3a, 0x5b, 0x5c, 0x5d, 0x65, 0x6e],
  ...[0x75, 0x7b, 0x7d, 0x7f, 0x80, 0x8f, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff],
];

const text = fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((all) => all.join(''));
const count = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...COUNTS) },
  fc.constantFrom(...ODD_COUNTS),
);
const details = fc.oneof(
  { weight: 8, arbitrary: members(fc.constantFrom(...COUNT_NAMES), count) },
  fc.constantFrom('null', '5', '[]', '"x"'),
);
const usage = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .tuple(
        members(fc.constantFrom(...COUNT_NAMES), count),
        members(fc.constantFrom(...DETAIL_NAMES), details),
      )
      .map(([counts, groups]) => `${counts.slice(0, -1)},"x":1,${groups.slice(1)}`)
      .map((json) => json.replaceAll(',}', '}').replace('{,', '{')),
  },
  fc.constantFrom('null', '{}', '[]', '3', '"x"'),
);
const model = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('"m"', '"org/model-1.5B"', '"another model"') },
  fc.constantFrom('""', 'null', '7', '"é"', '"m\\u0065"', `"${'x'.repeat(257)}"`, '["m"]'),
);
const choices = fc
  .array(fc.record({ index: fc.nat(9), message: fc.record({ content: text }) }), { maxLength: 3 })
  .map((value) => JSON.stringify(value));
const other = fc.jsonValue().map((value) => JSON.stringify(value));

/** An object with up to six members of these names, sometimes with one twice. */
function members(name: fc.Arbitrary<string>, value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .uniqueArray(fc.tuple(name, value), { maxLength: 6, selector: ([key]) => key })
    .chain((list) =>
      fc.oneof(
        { weight: 12, arbitrary: fc.constant(list) },
        fc.constant([...list, ...list.slice(0, 1)]),
      ),
    )
    .map((list) => `{${list.map(([key, json]) => `"${key}":${json}`).join(',')}}`);
}

const MEMBERS = { id: fc.constant('"x"'), model, choices, usage, other, mode: count };

/** Members in any order, some missing, sometimes one twice or with an escape in its name. */
const answer = fc
  .record(MEMBERS, { requiredKeys: ['model', 'usage'] })
  .chain((found) => {
    const all = Object.entries(found).map(([name, json]) => `"${name}":${json}`);
    const extra = fc.oneof(
      { weight: 12, arbitrary: fc.constant<string[]>([]) },
      fc.tuple(fc.constantFrom('"usage":', '"us\\u0061ge":'), usage).map((pair) => [pair.join('')]),
      fc.tuple(fc.constantFrom('"model":', '"mod\\u0065l":'), model).map((pair) => [pair.join('')]),
    );
    return extra.chain((more) => fc.shuffledSubarray([...all, ...more], { minLength: all.length }));
  })
  .map((parts) => `{${parts.join(',')}}`);

/** The same answer with blanks where they may be. */
function indented(json: string, indent: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, indent);
  } catch {
    return json;
  }
}

/** Whole answers as model servers send them, compact and indented. */
export const wholeAnswer: fc.Arbitrary<Buffer> = fc
  .tuple(answer, fc.constantFrom(null, null, ' ', '  ', '\t'), fc.constantFrom('', '\n', ' '))
  .map(([json, indent, end]) => (indent === null ? json : indented(json, indent)) + end)
  .map((json) => Buffer.from(json));

/** Answers with up to three bytes that were changed, inserted or removed. */
export const damagedAnswer: fc.Arbitrary<Buffer> = fc
  .tuple(
    wholeAnswer,
    fc.array(
      fc.record({
        place: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        byte: fc.constantFrom(...STRAY),
        removed: fc.constantFrom(0, 0, 1, 1, 1, 5),
        inserted: fc.constantFrom(0, 1, 1),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  )
  .map(([body, damages]) =>
    damages.reduce((bytes, { place, byte, removed, inserted }) => {
      const at = Math.floor(place * bytes.length);
      const stray = Buffer.alloc(inserted, byte);
      return Buffer.concat([bytes.subarray(0, at), stray, bytes.subarray(at + removed)]);
    }, body),
  );
