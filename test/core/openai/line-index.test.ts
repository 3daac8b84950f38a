import { spawnSync } from 'node:child_process';
import { isAscii, isUtf8 } from 'node:buffer';
import path from 'node:path';
import fc from 'fast-check';
import { createJsonCheck, type JsonLimits } from '../../../core/openai/json-check';
import {
  createLineIndex,
  FIELD,
  type Field,
  type LineIndex,
} from '../../../core/openai/line-index';
import { createLineScanner, type ScanRules } from '../../../core/openai/line-scanner';
import { ENDPOINTS, requestLine } from './request-lines';
import { line, RULES, scan } from './scan';

const ROOT = path.resolve(__dirname, '../../..');
const LIMITS = { maxDepth: 10, maxTokens: 1_000 };
const INDEX = createLineIndex()!;
/** Lines of a file of the property. */
const MAX_LINES = 20;

/** Everything that a scanner reports, in order, with the bytes of the prompts. */
function reports(chunks: readonly Buffer[], rules: ScanRules, index: LineIndex | null): unknown[] {
  const found: unknown[] = [];
  const scanner = createLineScanner({
    rules,
    checks: { isAscii, isUtf8 },
    seed: 7,
    index,
    sink: {
      request: ({ prompt: { bytes, ranges }, ...request }) => {
        const texts: string[] = [];
        for (let i = 0; i < ranges.length; i += 2)
          texts.push(bytes.toString('latin1', ranges[i], ranges[i + 1]));
        found.push({ ...request, texts });
      },
      fault: (error) => void found.push(error),
    },
  });
  for (const chunk of chunks) {
    const lent = Buffer.from(chunk);
    scanner.push(lent);
    lent.fill(0x0a);
  }
  found.push(scanner.end());
  return found;
}

/** The pieces of a file that end at some of its positions. */
function chunksOf(file: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = cuts.map((share) => Math.floor(share * file.length)).sort((a, b) => a - b);
  return [...ends, file.length].map((end, i) => file.subarray(ends[i - 1] ?? 0, end));
}

const anyRules = fc.record({
  endpoint: fc.constantFrom(...ENDPOINTS),
  maxLineBytes: fc.constantFrom(100, 300, 1_000, 1 << 20, 1 << 20, 1 << 20),
  maxRequests: fc.constantFrom(5, 50_000, 50_000),
  maxInputs: fc.constantFrom(2, 50_000, 50_000),
  singleModel: fc.boolean(),
  json: fc.record({
    maxDepth: fc.constantFrom(4, 6, 10_000, Infinity),
    maxTokens: fc.constantFrom(300, 500, 800, 10_000_000, Infinity),
  }),
});
const anyFile = anyRules.chain((rules) =>
  fc.tuple(
    fc.constant({ ...RULES, ...rules }),
    fc.array(requestLine(rules.endpoint), { minLength: 1, maxLength: MAX_LINES, size: 'max' }),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
    fc.constantFrom('\n', '\r\n'),
  ),
);

/** Whether the index knows the fields of a line without parsing it. */
function isIndexed(text: string | Buffer, limits = LIMITS): boolean {
  const bytes = Buffer.from(text as string);
  return INDEX.read(bytes, [0, bytes.length], limits);
}

describe('the index of a line', () => {
  it('knows where the fields of a request are', () => {
    const body = { model: 'm', messages: [{ content: 'é', role: 'system' }], tools: [{ a: [1] }] };
    const text = `x ${line({ custom_id: 'id' }, body)} x`;
    const bytes = Buffer.from(text);
    expect(INDEX.read(bytes, [1, bytes.length - 1], LIMITS)).toBe(true);
    const valueOf = (field: Field): unknown => {
      const json = bytes.subarray(1 + INDEX.startOf(field), 1 + INDEX.endOf(field)).toString();
      return JSON.parse(json) as unknown;
    };
    expect(valueOf(FIELD.customId)).toBe('id');
    expect(valueOf(FIELD.url)).toBe(RULES.endpoint);
    expect(valueOf(FIELD.model)).toBe('m');
    expect(valueOf(FIELD.messages)).toEqual(body.messages);
    expect(valueOf(FIELD.messagesSystem)).toBe('é');
    expect(valueOf(FIELD.tools)).toEqual(body.tools);
    expect(INDEX.endOf(FIELD.input)).toBe(0);
  });

  it.each<[string, string]>([
    ['text that is no JSON', `${line()}}`],
    ['an escape in a key', line().replace('"model"', '"mod\\u0065l"')],
    ['an escape in a custom_id', line({ custom_id: 'a"' })],
    ['an escape in a role', line().replace('"user"', '"us\\u0065r"')],
    ['another method', line({ method: 'GET' })],
    ['a repeated member', line().replace('{', '{"url":"/v1/other",')],
    ['a repeated content', line().replace('"content"', '"content":"","content"')],
    ['a system message without text', line({}, { messages: [{ role: 'system', content: {} }] })],
    ['no model', line({ body: { messages: [] } })],
    ['a body that is no object', line({ body: [] })],
  ])('does not read %s', (_what, text) => {
    expect(isIndexed(line())).toBe(true);
    expect(isIndexed(text)).toBe(false);
  });

  it('counts depth and tokens as the check of JSON does', () => {
    const nested = line({}, { messages: [{ role: 'user', content: [{ text: ['a', 1, null] }] }] });
    const check = (limits: JsonLimits) => createJsonCheck(limits)(Buffer.from(nested)) === null;
    for (let maxDepth = 1; maxDepth < 12; maxDepth++) {
      const limits = { ...LIMITS, maxDepth };
      expect([maxDepth, isIndexed(nested, limits)]).toEqual([maxDepth, check(limits)]);
    }
    for (let maxTokens = 1; maxTokens < 1_000; maxTokens++) {
      const limits = { ...LIMITS, maxTokens };
      expect([maxTokens, isIndexed(nested, limits)]).toEqual([maxTokens, check(limits)]);
    }
  });

  it('reads lines that are longer than its memory was', () => {
    const long = line({}, { messages: [{ role: 'user', content: 'é'.repeat(3 * 1024 * 1024) }] });
    expect(isIndexed(long)).toBe(true);
    expect(isIndexed(line())).toBe(true);
    expect(isIndexed(`${long}"`)).toBe(false);
  });

  it('does not take bytes of an earlier line for those of a shorter one', () => {
    const whole = line({}, { user: 'x'.repeat(100) });
    for (let length = 0; length < whole.length; length++) {
      expect(isIndexed(whole)).toBe(true);
      expect(isIndexed(whole.slice(0, length))).toBe(false);
    }
  });

  it('reads several lines of the same bytes, and changed bytes after a release', () => {
    const lines = [line({ custom_id: 'a' }), '{"cut', line({ custom_id: 'bc' })];
    const bytes = Buffer.from(lines.join('\n'));
    const starts = [0, 1, 2].map((i) => lines.slice(0, i).join('\n').length + (i > 0 ? 1 : 0));
    const read = (i: number) => {
      const start = starts[i]!;
      const isRead = INDEX.read(bytes, [start, start + lines[i]!.length], LIMITS);
      const [from, to] = [INDEX.startOf(FIELD.customId), INDEX.endOf(FIELD.customId)];
      return isRead ? bytes.toString('latin1', start + from, start + to) : null;
    };
    expect([2, 0, 1, 0, 2].map(read)).toEqual(['"bc"', '"a"', null, '"a"', '"bc"']);
    INDEX.release();
    bytes.write(' ', 0);
    expect([0, 2].map(read)).toEqual([null, '"bc"']);
    INDEX.release();
  });

  it('is compiled from the sources beside it', () => {
    const done = spawnSync(process.execPath, ['.ci/assembly.js', '--check'], { cwd: ROOT });
    expect([done.status, done.stderr.toString()]).toEqual([0, '']);
  });

  it('is missing if Node runs without WebAssembly', () => {
    const given = Reflect.get(globalThis, 'WebAssembly') as unknown;
    try {
      Object.assign(globalThis, { WebAssembly: undefined });
      expect(createLineIndex()).toBeNull();
    } finally {
      Object.assign(globalThis, { WebAssembly: given });
    }
  });
});

describe('a scanner with an index', () => {
  it('reports what a scanner reports that parses every line', () => {
    fc.assert(
      fc.property(anyFile, ([rules, lines, cuts, newline]) => {
        const file = Buffer.concat(lines.flatMap((one) => [Buffer.from(newline), one]));
        const chunks = chunksOf(file, cuts);
        expect(reports(chunks, rules, INDEX)).toEqual(reports([file], rules, null));
      }),
      { numRuns: 600 },
    );
  });

  it('can share the index with a scanner that takes turns with it', () => {
    const files = ['a', 'b'].map((id) =>
      [1, 2, 3].map((n) => Buffer.from(`${line({ custom_id: `${id}${n}` })}\n`)),
    );
    const found: string[] = [];
    const scanners = files.map(() =>
      createLineScanner({
        rules: RULES,
        checks: { isAscii, isUtf8 },
        seed: 7,
        index: INDEX,
        sink: {
          request: ({ offset, length }) => void found.push(`${offset} ${length}`),
          fault: ({ message }) => void found.push(message),
        },
      }),
    );
    for (const n of [0, 1, 2]) scanners.forEach((scanner, i) => scanner.push(files[i]![n]!));
    const length = files[0]![0]!.length;
    const expected = [0, 1, 2].map((n) => `${n * length} ${length - 1}`);
    expect(found).toEqual(expected.flatMap((one) => [one, one]));
    expect(scanners.map((scanner) => scanner.end().requests)).toEqual([3, 3]);
  });

  it('parses no line of the usual shape', () => {
    const parse = jest.spyOn(JSON, 'parse');
    try {
      const messages = [{ role: 'system', content: 'Be brief.' }];
      const lines = ['a', 'b', 'é'].map((id) => line({ custom_id: id }, { messages }));
      expect(reports([Buffer.from(lines.join('\n'))], RULES, INDEX)).toHaveLength(4);
      expect(parse).not.toHaveBeenCalled();
    } finally {
      parse.mockRestore();
    }
  });

  it.each<[string, unknown]>([
    ['text', 'Grüße'],
    ['text with escapes', 'Grüße\n"你好" \ud83d\ude00 \ud800'],
    ['parts', [{ type: 'text', text: 'Grü' }, 'ße', { type: 'image' }, 7]],
    ['no parts', []],
    ['text that is long', 'é'.repeat(20_000)],
  ])('gives a system prompt of %s the same hash every time', (_what, content) => {
    const at = (endpoint: string, body: object): string =>
      [1, 2].map((id) => line({ custom_id: `${id}`, url: endpoint, body })).join('\n');
    const hashes = (endpoint: string, body: object) => {
      const file = Buffer.from(at(endpoint, { model: 'm', ...body }));
      const expected = scan(file, { endpoint }).found.map(({ prefixHash }) => prefixHash);
      const found = reports([file], { ...RULES, endpoint }, INDEX).slice(0, 2);
      expect(found).toEqual(expected.map((prefixHash) => expect.objectContaining({ prefixHash })));
      return expected;
    };
    const messages = [{ role: 'developer', content }];
    const [hash, again] = hashes('/v1/chat/completions', { messages });
    expect(again).toBe(hash);
    expect(hash).not.toBe(0);
    expect(hashes('/v1/responses', { input: messages })).toEqual([hash, hash]);
    const instructions = typeof content === 'string' ? content : 'x';
    hashes('/v1/responses', { input: messages, instructions });
  });
});
