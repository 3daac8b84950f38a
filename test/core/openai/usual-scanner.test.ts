import { isAscii, isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { createIdSet } from '../../../core/openai/id-set';
import { createLineIndex } from '../../../core/openai/line-index';
import { createLineScanner } from '../../../core/openai/line-scanner';
import type { ScannedRequest, ScanRules } from '../../../core/openai/scan-sink';
import { createUsualScanner } from '../../../core/openai/usual-scanner';
import { FileIndexBuilder, readFileIndex } from '../../../core/plan/file-index';
import { anyFile, chunksOf } from './any-file';
import { line, RULES } from './scan';

const LINE_INDEX = createLineIndex()!;
const CHECKS = { isAscii, isUtf8 };

type Found = Omit<ScannedRequest, 'chain'> & { readonly blocks: readonly number[] };

function collect(found: Found[]) {
  return ({ chain, ...request }: ScannedRequest): void => {
    const { offset, length, prefixHash, model, fileId } = request;
    const blocks = [...chain.blocks.subarray(chain.from, chain.from + chain.length)];
    found.push({ offset, length, prefixHash, model, fileId, blocks });
  };
}

/** What a scanner tells that parses every line; null if the file has a fault. */
function parsed(file: Buffer, rules: ScanRules): Found[] | null {
  const found: Found[] = [];
  let faults = 0;
  const sink = { request: collect(found), fault: () => void faults++ };
  const scanner = createLineScanner({ rules, checks: CHECKS, seed: 7, index: null, sink });
  scanner.push(file);
  scanner.end();
  return faults > 0 ? null : found;
}

const builder = new FileIndexBuilder();
const ids = createIdSet();

/** What the index of the file tells, a few requests at a time; null if there is none. */
function indexed(chunks: readonly Buffer[], rules: ScanRules): Found[] | null {
  builder.clear();
  ids.clear();
  const sink = { request: (request: ScannedRequest) => builder.add(request) };
  const options = { rules, checks: CHECKS, seed: 7, index: LINE_INDEX, sink, ids };
  const scanner = createUsualScanner(options);
  if (scanner === null) return null;
  try {
    for (const chunk of chunks) {
      const lent = Buffer.from(chunk);
      scanner.push(lent);
      lent.fill(0x0a);
    }
    scanner.end();
  } catch {
    return null;
  }
  const terms = { release: '1', rules, bytes: 1 };
  const index = readFileIndex(Buffer.from(builder.build(terms, crc32)), terms, crc32)!;
  const found: Found[] = [];
  while (index.tellSome({ request: collect(found) }, 3));
  expect(index.requests).toBe(found.length);
  return found;
}

const RUNS = 200;
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 });
const usualLine = fc
  .tuple(
    fc.constantFrom('m', 'n', '模型'),
    fc.string({ maxLength: 900, unit: 'grapheme' }),
    fc.boolean(),
  )
  .map(([model, content, hasSystem]) => {
    const role = hasSystem ? 'system' : 'user';
    return line({}, { model, messages: [{ role, content }] });
  });
/** Lines with ids of their own, blank ones between some of them. */
const usualFile = fc.tuple(
  fc
    .array(fc.oneof({ weight: 9, arbitrary: usualLine }, fc.constantFrom('', ' ')), {
      minLength: 1,
    })
    .map((lines) => lines.map((one, i) => one.replace('"custom_id":"a"', `"custom_id":"${i}"`))),
  fc.constantFrom('\n', '\r\n'),
);

describe('the index of a file', () => {
  it('tells what a scan of the file does', () => {
    let indexes = 0;
    fc.assert(
      fc.property(usualFile, cuts, ([lines, lineEnd], at) => {
        const file = Buffer.from(lines.join(lineEnd));
        const found = indexed(chunksOf(file, at), RULES);
        if (found !== null) indexes++;
        expect(found ?? parsed(file, RULES)).toEqual(parsed(file, RULES));
      }),
      { numRuns: RUNS },
    );
    expect(indexes).toBeGreaterThan(RUNS / 2);
  });

  it('is never made of a file with a fault', () => {
    fc.assert(
      fc.property(anyFile, ([rules, lines, at, lineEnd]) => {
        const file = Buffer.from(lines.join(lineEnd));
        const found = indexed(chunksOf(file, at), rules);
        if (found !== null) expect(found).toEqual(parsed(file, rules));
      }),
      { numRuns: RUNS },
    );
  });

  it('has the chains of long prompts, and the model of each line', () => {
    const content = (i: number) => `${'A text that is shared. '.repeat(100)}${i}`;
    const lines = Array.from({ length: 1_000 }, (_, i) => {
      const messages = [{ role: 'user', content: content(i % 7) }];
      return line({ custom_id: `${i}` }, { model: `m-${i % 3}`, messages });
    });
    const file = Buffer.from(`\ufeff${lines.join('\r\n\n')}`);
    const found = indexed(chunksOf(file, [0.1, 0.5, 0.7]), RULES);
    expect(found).toHaveLength(1_000);
    expect(found).toEqual(parsed(file, RULES));
    expect(found![0]!.blocks.length).toBeGreaterThan(5);
  });

  it.each([
    ['is not JSON', '{'],
    ['has an escape in its model', line({ custom_id: 'z' }).replace('"m"', '"\\u006d"')],
    ['has a `custom_id` of an earlier line', line({ custom_id: '1' })],
    ['is for another endpoint', line({ custom_id: 'z', url: '/v1/embeddings' })],
    ['is too long', line({ custom_id: 'z' }, { text: 'x'.repeat(RULES.maxLineBytes) })],
    ['is not UTF-8', Buffer.from(line({ custom_id: '\u00ff' }), 'latin1')],
  ])('is not made if a line %s', (_what, odd) => {
    const usual = Array.from({ length: 9 }, (_, i) => `${line({ custom_id: `${i}` })}\n`).join('');
    const file = (...lines: (string | Buffer)[]) =>
      Buffer.concat(lines.map((one) => Buffer.from(one as string)));
    expect(indexed([file(usual)], RULES)).toHaveLength(9);
    expect(indexed([file(usual, odd, '\n')], RULES)).toBeNull();
    expect(indexed([file(usual), file(odd)], RULES)).toBeNull();
  });

  it.each([
    ['more requests than a batch can have', { maxRequests: 8 }],
    ['two models where one is allowed', { singleModel: true }],
    ['recordings', { endpoint: '/v1/audio/transcriptions' }],
  ])('is not made of a file with %s', (_what, rules) => {
    const lines = Array.from({ length: 9 }, (_, i) =>
      line({ custom_id: `${i}` }, { model: `m${i}` }),
    );
    expect(indexed([Buffer.from(lines.join('\n'))], { ...RULES, ...rules })).toBeNull();
  });
});
