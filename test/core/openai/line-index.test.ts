import { spawnSync } from 'node:child_process';
import { isAscii, isUtf8 } from 'node:buffer';
import path from 'node:path';
import fc from 'fast-check';
import { createJsonCheck, type JsonLimits } from '../../../core/openai/json-check';
import { createIdHasher } from '../../../core/openai/id-hash';
import {
  createLineIndex,
  MAX_TEXT_BYTES,
  RECORD,
  RECORD_WORDS,
  type IndexRules,
  type LineIndex,
} from '../../../core/openai/line-index';
import { createLineScanner } from '../../../core/openai/line-scanner';
import type { ScanRules } from '../../../core/openai/scan-sink';
import { anyFile, chunksOf } from './any-file';
import { line, RULES, scan } from './scan';

const ROOT = path.resolve(__dirname, '../../..');
const LIMITS = { maxDepth: 10, maxTokens: 1_000 };
const INDEX = createLineIndex()!;

/** Everything that a scanner reports, in order, with the chains of the prompts. */
function reports(chunks: readonly Buffer[], rules: ScanRules, index: LineIndex | null): unknown[] {
  const found: unknown[] = [];
  const scanner = createLineScanner({
    rules,
    checks: { isAscii, isUtf8 },
    seed: 7,
    index,
    sink: {
      request: ({ offset, length, prefixHash, model, fileId, chain }) => {
        const blocks = [...chain.blocks.subarray(chain.from, chain.from + chain.length)];
        found.push({ offset, length, prefixHash, model, fileId, blocks });
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

const INDEX_RULES: IndexRules = {
  url: Buffer.from(`"${RULES.endpoint}"`),
  required: ['messages'],
  countsInputs: false,
  answersAudio: false,
  maxLineBytes: RULES.maxLineBytes,
  json: LIMITS,
  seed: 7,
};

/** The records of the lines of a text, and where the index has stopped. */
function recordsOf(text: string, rules: Partial<IndexRules> = {}) {
  const { count, bytes, records } = INDEX.read(Buffer.from(text), { ...INDEX_RULES, ...rules })!;
  const list = Array.from({ length: count }, (_, i) => {
    return records.slice(i * RECORD_WORDS, (i + 1) * RECORD_WORDS);
  });
  return { list, bytes };
}

/** Whether the index knows the fields of a line without parsing it. */
function isIndexed(text: string, json = LIMITS): boolean {
  const { list } = recordsOf(text, { json, maxLineBytes: 1 << 24 });
  return list.length === 1 && list[0]![RECORD.shape] === 1;
}

describe('the index of a line', () => {
  it('knows where the fields of a request are, and its hashes', () => {
    const content = 'Be brief. '.repeat(9);
    const body = { model: 'é', messages: [{ content, role: 'system' }, ...[]] };
    const lines = ['{}', line({ custom_id: 'id-1' }, body), '', line({}, { model: 'é' })];
    const { list, bytes } = recordsOf(lines.join('\n'));
    const text = Buffer.from(lines.join('\n'));
    expect(bytes).toBe(text.length);
    expect(list.map((words) => words[RECORD.shape])).toEqual([0, 1, 2, 1]);
    const [, record, blank, last] = list;
    const textOf = (from: number, to: number) => text.toString('utf8', record![from], record![to]);
    expect(textOf(RECORD.start, RECORD.end)).toBe(lines[1]);
    expect(textOf(RECORD.idStart, RECORD.idEnd)).toBe('id-1');
    expect(textOf(RECORD.modelStart, RECORD.modelEnd)).toBe('é');
    expect(textOf(RECORD.systemStart, RECORD.systemEnd)).toBe(JSON.stringify(content));
    expect([blank![RECORD.start], blank![RECORD.end]]).toEqual(
      [3, 3].map((n) => n + record![1]! - 2),
    );
    expect([record, last].map((words) => words![RECORD.modelLine])).toEqual([1, 1]);
    expect(last![RECORD.prefixHash]).toBe(0);
  });

  it('hashes ids as the hasher for parsed ids does', () => {
    const hash = createIdHasher(INDEX_RULES.seed);
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }), (id) => {
        fc.pre(!JSON.stringify(id).includes('\\'));
        const { list } = recordsOf(line({ custom_id: id }));
        expect(list[0]!.subarray(RECORD.idHash, RECORD.idHash + 3)).toEqual(hash(id));
      }),
    );
  });

  it.each<[string, string]>([
    ['text that is no JSON', `${line()}}`],
    ['an escape in a key', line().replace('"model"', '"mod\\u0065l"')],
    ['an escape in a custom_id', line({ custom_id: 'a"' })],
    ['an escape in a role', line().replace('"user"', '"us\\u0065r"')],
    ['another method', line({ method: 'GET' })],
    ['another url', line({ url: '/v1/chat/completion' })],
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
    for (let length = 1; length < whole.length; length++) {
      expect(isIndexed(whole)).toBe(true);
      expect(isIndexed(whole.slice(0, length))).toBe(false);
    }
  });

  it('finds each fault of a string at each of its places', () => {
    const pieces = ['a', '\\\\', '\\"', '\\u00e9', '\\n', '\\/'];
    const bad = ['\\x', '\\u12g4', '\t', '\\\t', '\\U0000', '\\u"123'];
    const textOf = (content: string) => line().replace('"hi"', `"${content}"`);
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 400, size: 'max' }),
        fc.constantFrom(...bad),
        fc.nat(400),
        (good, fault, at) => {
          const worse = [...good.slice(0, at), fault, ...good.slice(at)];
          const [text, other] = [good, worse].map((list) => textOf(list.join('')));
          expect(isIndexed(text!)).toBe(true);
          expect(isIndexed(other!)).toBe(false);
          expect(() => JSON.parse(other!) as unknown).toThrow();
        },
      ),
    );
  });

  it('finds long texts that are equal, and none that are not', () => {
    const prompt = 'Be brief. '.repeat(60);
    const at = (i: number) => prompt.slice(0, i) + '_' + prompt.slice(i + 1);
    const prompts = [
      prompt,
      `${prompt}.`,
      prompt.slice(1),
      at(0),
      at(300),
      at(599),
      prompt,
      at(300),
    ];
    const lines = prompts.map((content) => line({}, { messages: [{ role: 'system', content }] }));
    const equal = recordsOf(lines.join('\n')).list.map((words) => words[RECORD.systemEqual]);
    const first = prompts.map((one) => equal[prompts.indexOf(one)]);
    // Texts that begin alike share an entry, so an equal one may be missed.
    equal.forEach((number, i) => expect([first[i], equal[i]]).toContain(number));
    expect(new Set(equal.slice(0, 6)).size).toBe(6);
    const twice = recordsOf([lines[0], lines[3], lines[0]].join('\n')).list;
    expect(twice[2]![RECORD.systemEqual]).toBe(twice[0]![RECORD.systemEqual]);
  });

  it('stops after 64 KiB of lines that must be parsed, and when it has no room for records', () => {
    const odd = '[1]\n'.repeat(20_000);
    expect(recordsOf(odd).bytes).toBeLessThan(64 * 1024);
    expect(recordsOf(odd).list.length * 4).toBe(recordsOf(odd).bytes);
    const usual = `${line()}\n`;
    const many = recordsOf(usual.repeat(Math.floor(MAX_TEXT_BYTES / usual.length)));
    expect(many.list.length * usual.length).toBe(many.bytes);
    expect(many.bytes).toBeLessThan(MAX_TEXT_BYTES - usual.length);
    expect(many.list.every((words) => words[RECORD.shape] === 1)).toBe(true);
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

  it('finds all lines of large files, however many are odd', () => {
    const long = { messages: [{ role: 'system', content: 'é'.repeat(700) }] };
    const odd = ['', '[]', '{', ' ', line({ custom_id: 'a"' })];
    const lines = Array.from({ length: 9_000 }, (_, i) => {
      if (i % 3_000 > 2_000) return odd[i % odd.length]!;
      return line({ custom_id: `${i % 8_999}` }, i % 2 === 0 ? long : {});
    });
    const file = Buffer.from(lines.join('\n'));
    const expected = reports([file], RULES, null);
    expect(reports([file], RULES, INDEX)).toEqual(expected);
    expect(reports(chunksOf(file, [0.1, 0.5, 0.7]), RULES, INDEX)).toEqual(expected);
  });

  it('takes lines with bad UTF-8 one by one', () => {
    const good = Buffer.from(`${line({ custom_id: 'a' })}\n`);
    const bad = Buffer.from(`${line({ custom_id: 'é' })}\n`, 'latin1');
    const file = Buffer.concat([good, bad, good, bad]);
    expect(reports([file], RULES, INDEX)).toEqual(reports([file], RULES, null));
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
