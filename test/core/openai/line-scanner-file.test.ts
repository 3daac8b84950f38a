import fc from 'fast-check';
import { line, openScan, scan, scanChunks } from './scan';

const MiB = 1024 * 1024;

/** Code, param and line of each fault. */
function faults(file: Buffer | string, rules: Parameters<typeof scan>[1] = {}): unknown[] {
  return scan(file, rules).errors.map(({ code, param, line }) => [code, param, line]);
}

describe('a file', () => {
  it.each(['', '\n', '\r\n \t\n', '\ufeff', '\ufeff\n'])(
    'with the content %j has no requests',
    (file) => {
      expect(faults(file)).toEqual([['empty_file', null, null]]);
    },
  );

  it('may use several models unless the batch must have one', () => {
    const file = ['m', 'm', 'n'].map((model, i) => line({ custom_id: `${i}` }, { model }));
    expect(faults(file.join('\n'))).toEqual([]);
    const single = faults(file.join('\n'), { singleModel: true });
    expect(single).toEqual([['mismatched_model', 'body.model', 3]]);
  });

  it('may not use more than 500 models', () => {
    const file = (models: number) =>
      Array.from({ length: models }, (_, i) => line({ custom_id: `${i}` }, { model: `m${i}` }));
    expect(faults(file(500).join('\n'))).toEqual([]);
    expect(faults(file(501).join('\n'))).toEqual([['too_many_models', null, null]]);
  });

  it('with too many lines has this fault and the faults of its first lines', () => {
    const file = ['[]', line(), line(), '{}', ''].join('\n');
    expect(faults(file, { maxRequests: 4 })).not.toContainEqual(['too_many_tasks', null, null]);
    expect(faults(file, { maxRequests: 3 })).toEqual([
      ['invalid_request', null, 1],
      ['duplicate_custom_id', 'custom_id', 3],
      ['too_many_tasks', null, null],
    ]);
    expect(scan(file, { maxRequests: 3 }).requests).toBe(4);
  });

  it.each<[unknown, number]>([
    ['one text', 1],
    [[1, 2, 3], 1],
    [['a', 'b'], 2],
    [[[1, 2], [3]], 2],
    [[], 0],
  ])('of embeddings counts %j as %d inputs', (input, count) => {
    const endpoint = '/v1/embeddings';
    const text = line({ url: endpoint, body: { model: 'm', input } });
    expect(faults(text, { endpoint, maxInputs: count })).toEqual([]);
    const fault = faults(text, { endpoint, maxInputs: count - 1 });
    expect(fault).toEqual([['too_many_inputs', null, null]]);
  });

  it('is split into the same lines for any sizes of its chunks', () => {
    const file = Buffer.from(
      [
        `\ufeff${line({ custom_id: 'ü' })}\r\n`,
        '\n  \t\r\n',
        `  ${line({ custom_id: '\u2028', unicode: '😀' })}  \n`,
        `${line({ custom_id: 'x'.repeat(600) })}\r\n[]\n{\n`,
        line({ custom_id: 'last' }, { messages: [{ role: 'system', content: 'é' }] }),
      ].join(''),
    );
    const whole = scan(file);
    expect(whole.found.map(({ offset, length }) => [offset, length])).toEqual([
      [3, expect.any(Number)],
      [file.indexOf('  {'), expect.any(Number)],
      [file.lastIndexOf('\n') + 1, file.length - file.lastIndexOf('\n') - 1],
    ]);
    for (const { offset, length } of whole.found) {
      const text = file.subarray(offset, offset + length).toString();
      expect(() => JSON.parse(text) as unknown).not.toThrow();
    }
    for (let at = 0; at <= file.length; at++) {
      expect(scanChunks([file.subarray(0, at), file.subarray(at)])).toEqual(whole);
    }
    for (const size of [1, 2, 3, 7, 64]) expect(scanChunks(inChunks(file, size))).toEqual(whole);
  });

  it('with a line of any length needs only the memory of the longest allowed line', () => {
    const chunk = Buffer.alloc(MiB, 'x');
    const { scanner, errors, found } = openScan({ maxLineBytes: 2 * MiB });
    const before = process.memoryUsage().arrayBuffers;
    let grown = 0;
    for (let i = 0; i < 200; i++) {
      scanner.push(i === 100 ? Buffer.from(`\n${line()}\n`) : chunk);
      grown = Math.max(grown, process.memoryUsage().arrayBuffers - before);
    }
    scanner.end();
    expect(grown).toBeLessThan(16 * MiB);
    expect(errors.map((error) => [error.code, error.line])).toEqual([
      ['line_too_long', 1],
      ['line_too_long', 3],
    ]);
    expect(found).toMatchObject([{ offset: 100 * MiB + 1, length: line().length }]);
  });
});

describe('the scanner', () => {
  it('accepts and refuses the same bytes as JSON.parse and a UTF-8 check', () => {
    const valid = Buffer.from(line({ custom_id: 'é\\' }, { n: -1.5e3, t: [true, null, '\u2028'] }));
    const change = fc.record({
      at: fc.nat(valid.length - 1),
      with: fc.oneof(
        fc.uint8Array({ maxLength: 3 }),
        fc.constantFrom('"', '\\', '{', '}', ',', ' ', '\\u00', '\t').map((s) => Buffer.from(s)),
      ),
      cut: fc.nat(2),
    });
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 1, maxLength: 3 }),
        fc.nat(40),
        (changes, split) => {
          const text = changes.reduce(
            (bytes, { at, with: inserted, cut }) =>
              Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + cut)]),
            valid,
          );
          const bytes = Buffer.from(text.filter((byte) => byte !== 0x0a && byte !== 0x0d));
          const refused = scanChunks([bytes.subarray(0, split), bytes.subarray(split)]).errors.some(
            ({ code }) => code === 'invalid_json_line',
          );
          expect(refused).toBe(!isJson(bytes));
        },
      ),
      { numRuns: 3000 },
    );
  });
});

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

function* inChunks(file: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < file.length; at += size) yield file.subarray(at, at + size);
}
