import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { createUploadInspector } from '../../api/uploads/upload-inspector';

function inspect(bytes: Buffer, cuts: readonly number[] = [], maxLineBytes = 1_000) {
  const inspector = createUploadInspector(maxLineBytes);
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    inspector.update(bytes.subarray(from, Math.min(cut, bytes.length)));
    from = Math.min(cut, bytes.length);
  }
  inspector.update(bytes.subarray(from));
  return inspector.finish();
}

afterEach(() => jest.restoreAllMocks());

const cuts = fc.array(fc.nat(60), { maxLength: 20 });

it('finds the same facts in chunks of any size', () => {
  const text = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.string({ unit: 'grapheme', maxLength: 30 }).map((s) => Buffer.from(s)),
    fc
      .array(fc.constantFrom('\ufeff', ' ', '\n', '\r\n', '{}', '{"a":1}', '[', '😀', 'x'), {
        maxLength: 12,
      })
      .map((pieces) => Buffer.from(pieces.join(''))),
  );
  fc.assert(
    fc.property(text, cuts, (bytes, at) => {
      const facts = inspect(bytes, at);
      expect(facts).toEqual(inspect(bytes));
      expect(facts.bytes).toBe(bytes.length);
      expect(facts.sha256).toEqual(createHash('sha256').update(bytes).digest());
      expect(facts.isUtf8).toBe(decodes(bytes));
    }),
    { numRuns: 500, seed: 7 },
  );
});

function decodes(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

it.each([
  ['{}', 'jsonl'],
  ['\ufeff\n \r\n\t{"a":1}\r\nbroken', 'jsonl'],
  ['', 'blank'],
  ['\ufeff', 'blank'],
  ['\n\n  ', 'blank'],
  ['{"a":1', 'other'],
  ['{"a":1} {"b":2}\n', 'other'],
  ['x', 'other'],
  ['\n\ufeff{}', 'other'],
])('recognizes %j by its first line', (text, verdict) => {
  expect(inspect(Buffer.from(text)).firstLine).toBe(verdict);
});

it('leaves a line that is too long to ingestion, and keeps none of it in memory', () => {
  const bytes = Buffer.from(`{"a":"${'x'.repeat(5_000)}`);
  expect(inspect(bytes, [100, 900, 1_500]).firstLine).toBe('jsonl');
});

it.each([
  ['8 MB of [', `{"a":${'['.repeat(8_000_000)}`],
  ['a million nested objects', '{"a":'.repeat(1_000_000)],
  ['many nested arrays, closed', `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}\n{}`],
  ['many keys', `{${Array.from({ length: 80_000 }, (_, i) => `"${i}":1`).join()}}`],
  ['more than 1 MiB', `{"a":"${'x'.repeat(1024 ** 2)}"}`],
])('leaves a line that is too complex to ingestion: %s', (_name, text) => {
  const parse = jest.spyOn(JSON, 'parse');
  expect(inspect(Buffer.from(text), [], 16 * 1024 ** 2).firstLine).toBe('jsonl');
  expect(parse.mock.calls.length).toBe(0);
});
