import { line, scan } from './scan';

const MiB = 1024 * 1024;
const CHAT = '/v1/chat/completions';

/** Code, param and line of each fault. */
function faults(file: Buffer | string, rules: Parameters<typeof scan>[1] = {}): unknown[] {
  return scan(file, rules).errors.map(({ code, param, line }) => [code, param, line]);
}

describe('a line of the input file', () => {
  it('is reported with offset, length, model and prefix hash if it has no fault', () => {
    const first = line();
    const { found, errors, requests } = scan(`${first}\n${line({ custom_id: 'b' })}`);
    expect(errors).toEqual([]);
    expect(requests).toBe(2);
    const rest = { prefixHash: 0, model: 'm', fileId: null };
    expect(found).toEqual([
      { offset: 0, length: first.length, ...rest },
      { offset: first.length + 1, length: first.length, ...rest },
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
    ['is a number', '17', ['invalid_request', null, 1]],
    ['is a boolean', 'true', ['invalid_request', null, 1]],
    ['has a trailing comma', `${line()},`, ['invalid_json_line', null, 1]],
    ['has text behind its object', `${line()} x`, ['invalid_json_line', null, 1]],
    ['has a comment', `${line()} // x`, ['invalid_json_line', null, 1]],
    ['has single quotes', "{'custom_id':'a'}", ['invalid_json_line', null, 1]],
    ['ends too early', line().slice(0, -1), ['invalid_json_line', null, 1]],
    ['has a raw tab in a string', '{"custom_id":"a\tb"}', ['invalid_json_line', null, 1]],
    ['has a second BOM', `\ufeff\ufeff${line()}`, ['invalid_json_line', null, 1]],
    ['has bare carriage returns', `${line()}\r${line()}`, ['invalid_json_line', null, 1]],
    ['is nothing but a form feed', `\f`, ['invalid_json_line', null, 1]],
    ['is nothing but a no-break space', '\u00a0', ['invalid_json_line', null, 1]],
    [
      'is UTF-16',
      Buffer.from(line(), 'utf16le').toString('latin1'),
      ['invalid_json_line', null, 1],
    ],
    ['opens 800,000 brackets', '['.repeat(800_000), ['invalid_json_line', null, 1]],
    ['has no custom_id', line({ custom_id: undefined }), absent('custom_id')],
    ['has a null custom_id', line({ custom_id: null }), absent('custom_id')],
    ['has no method', line({ method: undefined }), absent('method')],
    ['has no url', line({ url: undefined }), absent('url')],
    ['has no body', line({ body: undefined }), absent('body')],
    ['has a null body', line({ body: null }), absent('body')],
    ['has a number as custom_id', line({ custom_id: 7 }), ['invalid_request', 'custom_id', 1]],
    ['has a boolean as custom_id', line({ custom_id: true }), ['invalid_request', 'custom_id', 1]],
    ['has an object as custom_id', line({ custom_id: {} }), ['invalid_request', 'custom_id', 1]],
    [
      'has a custom_id of 513 plain characters',
      line({ custom_id: 'x'.repeat(513) }),
      ['invalid_request', 'custom_id', 1],
    ],
    [
      'repeats its custom_id, the last time with a number',
      `${line().slice(0, -1)},"custom\\u005fid":7}`,
      ['invalid_request', 'custom_id', 1],
    ],
    ['has a null method', line({ method: null }), absent('method')],
    ['has a null url', line({ url: null }), absent('url')],
    ['has a url that ends in a slash', line({ url: `${CHAT}/` }), ['invalid_url', 'url', 1]],
    ['has an absolute url', line({ url: `https://x${CHAT}` }), ['invalid_url', 'url', 1]],
    ['has a url with a query', line({ url: `${CHAT}?a=1` }), ['invalid_url', 'url', 1]],
    ['has a url in other case', line({ url: '/v1/Chat/completions' }), ['invalid_url', 'url', 1]],
    ['has a url without /v1', line({ url: '/chat/completions' }), ['invalid_url', 'url', 1]],
    ['has an empty url', line({ url: '' }), ['invalid_url', 'url', 1]],
    ['has an empty method', line({ method: '' }), ['invalid_method', 'method', 1]],
    ['has a number as method', line({ method: 1 }), ['invalid_method', 'method', 1]],
    ['has a number as body', line({ body: 1 }), ['invalid_request', 'body', 1]],
    ['has an array as model', line({}, { model: ['m'] }), ['invalid_request', 'body.model', 1]],
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
  ])('is a fault if it %s', (_, text, fault) => {
    expect(faults(text)).toEqual([fault]);
  });

  it('is a fault if it repeats the custom_id of an earlier line, in any spelling', () => {
    const again = line().replace('"a"', '"\\u0061"');
    expect(faults(`${line()}\n\n${again}\n${line({ custom_id: 'A' })}`)).toEqual([
      ['duplicate_custom_id', 'custom_id', 3],
    ]);
  });

  it('reports several faults in a fixed order', () => {
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

  it('is read with the last of repeated members, after unescaping', () => {
    const text = line({ url: 'x' }).slice(0, -1);
    expect(faults(`${text},"u\\u0072l":"\\/v1/chat/completions"}`)).toEqual([]);
    expect(faults(line().replace('"model":"m"', '"model":"m","mode\\u006c":""'))).toEqual([
      ['invalid_request', 'body.model', 1],
    ]);
  });

  it.each<[string, string[]]>([
    ['case', ['id', 'ID']],
    ['normal form', ['\u00e9', 'e\u0301']],
    ['blanks around', ['id', ' id', 'id ', 'id\u00a0']],
    ['a NUL', ['id', 'id\0']],
    ['half a surrogate pair', ['\ud800', '\ud801', '\ufffd']],
    ['digits', ['1', '01', '1.0']],
    ['what looks like an escape', ['a', '\\u0061']],
    ['one place in 512 characters', [`${'x'.repeat(511)}y`, `${'x'.repeat(511)}z`]],
    ['JSON', ['{"a":1}', '{"a": 1}']],
  ])('has a different custom_id if the ids differ by %s', (_what, ids) => {
    expect(faults(ids.map((id) => line({ custom_id: id })).join('\n'))).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['true', 'streaming_unsupported'],
    ['false', undefined],
    ['null', undefined],
    ['"true"', undefined],
    ['1', undefined],
    ['false,"stream":true', 'streaming_unsupported'],
    ['true,"stream":false', undefined],
  ])('with "stream":%s has the fault %s', (stream, code) => {
    const text = line().replace('"model"', `"stream":${stream},"model"`);
    expect(scan(text).errors[0]?.code).toBe(code);
  });

  it('may contain huge numbers and 9,000 levels of nesting', () => {
    for (const value of ['1e400', '-1E-400', '9007199254740993', '0.1e1']) {
      expect(faults(line({}, { n: 0 }).replace('"n":0', `"n":${value}`))).toEqual([]);
    }
    const deep = [`${'['.repeat(9_000)}${']'.repeat(9_000)}`];
    deep.push(`${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`);
    for (const value of deep) {
      const text = line({}, { n: 0 }).replace('"n":0', `"n":${value}`);
      expect(faults(text, { maxLineBytes: 16 * MiB })).toEqual([]);
    }
  });

  it('may begin with a BOM only at the start of the file', () => {
    const file = [`\ufeff${line()}`, `\ufeff${line({ custom_id: 'b' })}`, ''].join('\n');
    const { errors, found } = scan(file);
    expect(errors).toMatchObject([{ code: 'invalid_json_line', line: 2 }]);
    expect(found).toMatchObject([{ offset: 3, length: line().length }]);
    // After a blank line, a BOM does not start the file.
    expect(scan(`\n\ufeff${line()}`).errors).toMatchObject([
      { code: 'invalid_json_line', line: 2 },
    ]);
  });

  it.each([
    ['8 MB of [', '['.repeat(8_000_000), 'more than 10000 deep'],
    ['8 MB of nested objects', '{"a":'.repeat(1_600_000), 'more than 10000 deep'],
    ['16 MB of empty arrays', `[${'[],'.repeat(5_590_000)}1]`, 'more than 10000000 JSON tokens'],
    ['two million strings', `[${'"abcd",'.repeat(2_000_000)}1]`, 'more than 10000000 JSON tokens'],
    [
      'a million and a half keys',
      `{${Array.from({ length: 1_500_000 }, (_, i) => `"${i}":1`).join()}}`,
      'more than 10000000 JSON tokens',
    ],
  ])('is refused before it is parsed: %s', (_name, value, text) => {
    const parse = jest.spyOn(JSON, 'parse');
    const bomb = line({}, { n: 0 }).replace('"n":0', `"n":${value}`);
    const file = [line(), bomb, line({ custom_id: 'c' })].join('\n');
    const { errors, found } = scan(file, { maxLineBytes: 32 * MiB });
    expect(errors).toEqual([
      { code: 'invalid_json_line', message: expect.stringContaining(text), param: null, line: 2 },
    ]);
    expect(found).toHaveLength(2);
    const calls = parse.mock.calls.length;
    parse.mockRestore();
    expect(calls).toBe(2);
  });

  it.each([
    ['numbers to the brim', `[${'1,'.repeat(8_388_500)}1]`],
    ['50,000 arrays of tokens', `[${'[101,2023,2003,1037,7953],'.repeat(49_999)}[1]]`],
    ['20,000 messages', `[${'{"role":"user","content":"Hi {[, \\"there"},'.repeat(20_000)}1]`],
  ])('passes with what ordinary clients send: %s', (_name, value) => {
    const text = line({}, { n: 0 }).replace('"n":0', `"n":${value}`);
    expect(faults(text, { maxLineBytes: 32 * MiB })).toEqual([]);
  });

  it('passes with unknown members, a false or null stream, and the longest names', () => {
    const file = [
      line({ custom_id: '😀'.repeat(512), priority: 1, __proto__: { url: 1 } }, { stream: false }),
      line({ custom_id: ' a ' }, { stream: null, model: 'é'.repeat(256) }),
      line({ custom_id: '\ud800' }, { messages: 'the model server may refuse it' }),
    ];
    expect(faults(file.join('\n'))).toEqual([]);
  });

  it('that is not UTF-8 is a fault and does not affect its neighbours', () => {
    const bad = Buffer.from(line({ custom_id: 'b' }, { user: 'é' }), 'latin1');
    const newline = Buffer.from('\n');
    const parts = [line(), newline, bad, newline, line({ custom_id: 'ü' })].map((part) =>
      Buffer.from(part as string),
    );
    expect(faults(Buffer.concat(parts))).toEqual([['invalid_json_line', null, 2]]);
  });

  it('is too long above the byte limit, not at it', () => {
    const maxLineBytes = Buffer.byteLength(line());
    const rules = { maxLineBytes };
    expect(faults(`${line()}\r\n`, rules)).toEqual([]);
    expect(faults(`\ufeff${line()}\r\n`, rules)).toEqual([]);
    expect(faults(`\n${line()} \r\n${line()}`, rules)).toEqual([['line_too_long', null, 2]]);
    expect(faults(`${line()}${'x'.repeat(9)}`, rules)).toEqual([['line_too_long', null, 1]]);
  });
});

describe('the message of a fault', () => {
  it.each<[string, string, string]>([
    ['a repeated custom_id', `${line()}\n${line()}`, 'same `custom_id`, "a"; each must be unique'],
    ['an id of another type', line({ custom_id: 7 }), '1 to 512 characters; it is a number'],
    ['an empty id', line({ custom_id: '' }), 'it is empty'],
    ['a longer id', line({ custom_id: 'x'.repeat(513) }), 'it is longer'],
    ['another url', line({ url: '/v1/x' }), `"${CHAT}", not "/v1/x"`],
    ['a long url', line({ url: `/${'x'.repeat(9_999)}` }), `not "/${'x'.repeat(63)}"…`],
    ['another method', line({ method: 'get' }), '"POST", not "get"'],
    ['a method with a NUL', line({ method: 'P\0' }), 'not "P\\u0000"'],
    ['a body of another type', line({ body: [] }), 'a JSON object; it is an array'],
    ['a model of another type', line({}, { model: {} }), '`body.model` must be a string'],
    ['no model', line({}, { model: undefined }), 'Missing required parameter: `body.model`'],
    ['a line that is an array', '[]', 'one JSON object; this one is an array'],
    ['a line that is null', 'null', 'this one is null'],
    ['no JSON', '{', 'Each line must be one whole JSON object'],
    ['a stream', line({}, { stream: true }), 'remove `stream` or set it to false'],
    ['no request', '', 'Write one JSON object on each line'],
  ])('says what to change for %s', (_what, file, text) => {
    expect(scan(file).errors[0]?.message).toContain(text);
  });

  it('names both models of a single-model batch, and the limits that a file exceeds', () => {
    const two = [line(), line({ custom_id: 'b' }, { model: 'n' })].join('\n');
    const messageOf = (rules: Parameters<typeof scan>[1]) => scan(two, rules).errors[0]?.message;
    expect(messageOf({ singleModel: true })).toMatch(/here it is "n", on the first line "m"/);
    expect(messageOf({ maxRequests: 1 })).toMatch(/1 requests; this one has 2\. Split it/);
    expect(messageOf({ maxLineBytes: 20 })).toMatch(/20 bytes; this one is longer/);
  });
});

describe('the endpoints', () => {
  it.each([
    ['/v1/chat/completions', 'messages'],
    ['/v1/completions', 'prompt'],
    ['/v1/embeddings', 'input'],
    ['/v1/responses', 'input'],
    ['/v1/moderations', 'input'],
  ])('%s requires body.%s', (endpoint, field) => {
    const request = (body: object) =>
      JSON.stringify({ custom_id: 'a', method: 'POST', url: endpoint, body });
    expect(faults(request({ model: 'm', [field]: 'x' }), { endpoint })).toEqual([]);
    expect(faults(request({ model: 'm' }), { endpoint })).toEqual([
      ['missing_required_parameter', `body.${field}`, 1],
    ]);
  });

  it('use the default model for a moderation without one', () => {
    const endpoint = '/v1/moderations';
    const file = ['m', undefined, null].map((model, i) =>
      line({ custom_id: `${i}`, url: endpoint, body: { input: 'x', model } }),
    );
    const models = scan(file.join('\n'), { endpoint }).found.map(({ model }) => model);
    expect(models).toEqual(['m', 'omni-moderation-latest', 'omni-moderation-latest']);
    const single = faults(file.join('\n'), { endpoint, singleModel: true });
    expect(single).toEqual([2, 3].map((n) => ['mismatched_model', 'body.model', n]));
  });

  it('that only the configuration lists require nothing but a model', () => {
    const endpoint = '/v1/rerank';
    expect(faults(line({ url: endpoint, body: { model: 'm' } }), { endpoint })).toEqual([]);
  });
});
