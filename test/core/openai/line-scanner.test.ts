import fc from 'fast-check';
import { MAX_MODELS } from '../../../core/openai/line-scanner';
import { line, openScan, scan, scanChunks } from './scan';

const MiB = 1024 * 1024;

/** Code, param and line of each fault. */
function faults(file: Buffer | string, rules: Parameters<typeof scan>[1] = {}): unknown[] {
  return scan(file, rules).errors.map(({ code, param, line }) => [code, param, line]);
}

describe('a line of the input file', () => {
  it('without a fault is known by offset, length, model and prefix', () => {
    const first = line();
    const { found, errors, requests } = scan(`${first}\n${line({ custom_id: 'b' })}`);
    expect(errors).toEqual([]);
    expect(requests).toBe(2);
    expect(found).toEqual([
      { offset: 0, length: first.length, prefixHash: 0, model: 'm' },
      { offset: first.length + 1, length: first.length, prefixHash: 0, model: 'm' },
    ]);
  });

  const absent = (name: string) => ['missing_required_parameter', name, 1];
  it.each<[string, string, unknown[]]>([
    ['is not JSON', '{', ['invalid_json_line', null, 1]],
    ['holds two values', `${line()}${line()}`, ['invalid_json_line', null, 1]],
    ['has NaN', '{"custom_id":NaN}', ['invalid_json_line', null, 1]],
    ['is an array', '[]', ['invalid_request', null, 1]],
    ['is a string', '"x"', ['invalid_request', null, 1]],
    ['is null', 'null', ['invalid_request', null, 1]],
    ['has no custom_id', line({ custom_id: undefined }), absent('custom_id')],
    ['has a null custom_id', line({ custom_id: null }), absent('custom_id')],
    ['has no method', line({ method: undefined }), absent('method')],
    ['has no url', line({ url: undefined }), absent('url')],
    ['has no body', line({ body: undefined }), absent('body')],
    ['has a null body', line({ body: null }), absent('body')],
    ['has a number as custom_id', line({ custom_id: 7 }), ['invalid_request', 'custom_id', 1]],
    ['has an empty custom_id', line({ custom_id: '' }), ['invalid_request', 'custom_id', 1]],
    [
      'has a custom_id of 513 characters',
      line({ custom_id: '😀'.repeat(513) }),
      ['invalid_request', 'custom_id', 1],
    ],
    ['has another url', line({ url: '/v1/embeddings' }), ['invalid_url', 'url', 1]],
    ['has a url of another type', line({ url: 1 }), ['invalid_url', 'url', 1]],
    ['has another method', line({ method: 'GET' }), ['invalid_method', 'method', 1]],
    ['has a method in lower case', line({ method: 'post' }), ['invalid_method', 'method', 1]],
    ['has an array as body', line({ body: [] }), ['invalid_request', 'body', 1]],
    ['has a text as body', line({ body: '{}' }), ['invalid_request', 'body', 1]],
    ['has no model', line({}, { model: undefined }), ['invalid_request', 'body.model', 1]],
    ['has a null model', line({}, { model: null }), ['invalid_request', 'body.model', 1]],
    ['has an empty model', line({}, { model: '' }), ['invalid_request', 'body.model', 1]],
    ['has a number as model', line({}, { model: 4 }), ['invalid_request', 'body.model', 1]],
    [
      'has a model of 257 characters',
      line({}, { model: 'x'.repeat(257) }),
      ['invalid_request', 'body.model', 1],
    ],
    ['has no messages', line({}, { messages: undefined }), absent('body.messages')],
    ['has null messages', line({}, { messages: null }), absent('body.messages')],
    ['asks for a stream', line({}, { stream: true }), ['streaming_unsupported', 'body.stream', 1]],
  ])('that %s is a fault', (_, text, fault) => {
    expect(faults(text)).toEqual([fault]);
  });

  it('that repeats a custom_id is a fault on the later line, whatever the spelling', () => {
    const again = line().replace('"a"', '"\\u0061"');
    expect(faults(`${line()}\n\n${again}\n${line({ custom_id: 'A' })}`)).toEqual([
      ['duplicate_custom_id', 'custom_id', 3],
    ]);
  });

  it('may have several faults, in a fixed order', () => {
    expect(faults('{}')).toEqual(
      ['custom_id', 'method', 'url', 'body'].map((name) => ['missing_required_parameter', name, 1]),
    );
    const bad = line({ method: 1, custom_id: 1 }, { model: 1, messages: null, stream: true });
    expect(faults(`${bad}`)).toEqual([
      ['invalid_request', 'custom_id', 1],
      ['invalid_method', 'method', 1],
      ['invalid_request', 'body.model', 1],
      ['missing_required_parameter', 'body.messages', 1],
      ['streaming_unsupported', 'body.stream', 1],
    ]);
  });

  it('is read as its last members say, after unescaping', () => {
    const text = line({ url: 'x' }).slice(0, -1);
    expect(faults(`${text},"u\\u0072l":"\\/v1/chat/completions"}`)).toEqual([]);
    expect(faults(line().replace('"model":"m"', '"model":"m","mode\\u006c":""'))).toEqual([
      ['invalid_request', 'body.model', 1],
    ]);
  });

  it('passes with unknown members, false or null streams and the longest names', () => {
    const file = [
      line({ custom_id: '😀'.repeat(512), priority: 1, __proto__: { url: 1 } }, { stream: false }),
      line({ custom_id: ' a ' }, { stream: null, model: 'é'.repeat(256) }),
      line({ custom_id: '\ud800' }, { messages: 'the model server may refuse it' }),
    ];
    expect(faults(file.join('\n'))).toEqual([]);
  });

  it('that is not UTF-8 is a fault of its own, and spares its neighbours', () => {
    const bad = Buffer.from(line({ custom_id: 'b' }, { user: 'é' }), 'latin1');
    const newline = Buffer.from('\n');
    const parts = [line(), newline, bad, newline, line({ custom_id: 'ü' })].map((part) =>
      Buffer.from(part as string),
    );
    expect(faults(Buffer.concat(parts))).toEqual([['invalid_json_line', null, 2]]);
  });

  it('over the byte limit is too long, the limit itself is not', () => {
    const maxLineBytes = Buffer.byteLength(line());
    const rules = { maxLineBytes };
    expect(faults(`${line()}\r\n`, rules)).toEqual([]);
    expect(faults(`\ufeff${line()}\r\n`, rules)).toEqual([]);
    expect(faults(`\n${line()} \r\n${line()}`, rules)).toEqual([['line_too_long', null, 2]]);
    expect(faults(`${line()}${'x'.repeat(9)}`, rules)).toEqual([['line_too_long', null, 1]]);
  });
});

describe('the endpoints', () => {
  it.each([
    ['/v1/chat/completions', 'messages'],
    ['/v1/completions', 'prompt'],
    ['/v1/embeddings', 'input'],
    ['/v1/responses', 'input'],
    ['/v1/moderations', 'input'],
  ])('%s wants body.%s', (endpoint, field) => {
    const request = (body: object) =>
      JSON.stringify({ custom_id: 'a', method: 'POST', url: endpoint, body });
    expect(faults(request({ model: 'm', [field]: 'x' }), { endpoint })).toEqual([]);
    expect(faults(request({ model: 'm' }), { endpoint })).toEqual([
      ['missing_required_parameter', `body.${field}`, 1],
    ]);
  });

  it('plan a moderation without model under the default', () => {
    const endpoint = '/v1/moderations';
    const file = ['m', undefined, null].map((model, i) =>
      line({ custom_id: `${i}`, url: endpoint, body: { input: 'x', model } }),
    );
    const models = scan(file.join('\n'), { endpoint }).found.map(({ model }) => model);
    expect(models).toEqual(['m', 'omni-moderation-latest', 'omni-moderation-latest']);
    const single = faults(file.join('\n'), { endpoint, singleModel: true });
    expect(single).toEqual([2, 3].map((n) => ['mismatched_model', 'body.model', n]));
  });

  it('known by configuration only want a model', () => {
    const endpoint = '/v1/rerank';
    expect(faults(line({ url: endpoint, body: { model: 'm' } }), { endpoint })).toEqual([]);
  });
});

describe('a file', () => {
  it.each(['', '\n', '\r\n \t\n', '\ufeff', '\ufeff\n'])('of %j has no requests', (file) => {
    expect(faults(file)).toEqual([['empty_file', null, null]]);
  });

  it('may name several models, unless one is asked for', () => {
    const file = ['m', 'm', 'n'].map((model, i) => line({ custom_id: `${i}` }, { model }));
    expect(faults(file.join('\n'))).toEqual([]);
    const single = faults(file.join('\n'), { singleModel: true });
    expect(single).toEqual([['mismatched_model', 'body.model', 3]]);
  });

  it('may not name more models than the engine can keep apart', () => {
    const file = (models: number) =>
      Array.from({ length: models }, (_, i) => line({ custom_id: `${i}` }, { model: `m${i}` }));
    expect(faults(file(MAX_MODELS).join('\n'))).toEqual([]);
    expect(faults(file(MAX_MODELS + 1).join('\n'))).toEqual([['too_many_models', null, null]]);
  });

  it('of too many lines has that fault beside those of its first lines', () => {
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

  it('is cut into the same lines wherever its chunks end', () => {
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

  it('with a line of any length is read in the memory of the longest allowed one', () => {
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
  it('accepts and refuses what JSON.parse and a UTF-8 check do, for any bytes', () => {
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
