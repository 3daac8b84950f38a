import fc from 'fast-check';
import { NO_USAGE } from '../../../core/batch/counts';
import { embedAnswer } from '../../../core/openai/answer';

function embedded(text: string, status = 200): string {
  return embedAnswer(status, Buffer.from(text)).json.toString('latin1');
}

function wrappedMessage(body: Buffer | string, status = 200): string {
  const answer = embedAnswer(status, Buffer.from(body as string));
  expect(answer).toMatchObject({ ok: false, usage: NO_USAGE, model: null });
  const { error } = JSON.parse(answer.json.toString('latin1')) as { error: { message: string } };
  expect(error).toEqual({
    message: error.message,
    type: 'server_error',
    param: null,
    code: 'invalid_response',
  });
  return error.message;
}

describe('an embedded answer', () => {
  it.each([
    ['{"a":9007199254740993}', '{"a":9007199254740993}'],
    ['{"a":1.0,"b":1e400,"c":-0}', '{"a":1.0,"b":1e400,"c":-0}'],
    ['{"a":"\\u00e9\\/\\n"}', '{"a":"\\u00e9\\/\\n"}'],
    ['{"a":"\\ud800"}', '{"a":"\\ud800"}'],
    ['{"a":"x","a":"y"}', '{"a":"x","a":"y"}'],
    ['{\n  "a" : [ 1 ,\t2 ]\r\n}\n', '{"a":[1,2]}'],
    ['{"a b":" c \\" d \\\\" }', '{"a b":" c \\" d \\\\"}'],
    ['{"a":"é\u2028\u0085😀"}', '{"a":"\\u00e9\\u2028\\u0085\\ud83d\\ude00"}'],
    ['{"a":"\ufffd"}', '{"a":"\\ufffd"}'],
    ['{"a":"\ufeff"}', '{"a":"\\ufeff"}'],
    ['{}', '{}'],
    [
      '{"a":1e2,"b":1E+02,"c":0.10,"d":123456789012345678901234567890}',
      '{"a":1e2,"b":1E+02,"c":0.10,"d":123456789012345678901234567890}',
    ],
    ['{"b":1,"10":2,"2":3,"a":4}', '{"b":1,"10":2,"2":3,"a":4}'],
    ['{"":{"":[]}}', '{"":{"":[]}}'],
    ['{"a":"\u2029\u007f\u00a0"}', '{"a":"\\u2029\u007f\\u00a0"}'],
    ['{"é":"\\ud83d\\ude00"}', '{"\\u00e9":"\\ud83d\\ude00"}'],
    ['{"a":"\\\\","b":"\\\""}', '{"a":"\\\\","b":"\\\""}'],
    ['\t{"a" :\n[ ] , "b" : { } }\r\n', '{"a":[],"b":{}}'],
    [
      `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
      `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    ],
  ])('keeps the tokens of %s', (text, json) => {
    expect(embedded(text)).toBe(json);
    expect(embedAnswer(200, Buffer.from(text)).ok).toBe(true);
    expect(embedded(text, 404)).toBe(json);
    expect(embedAnswer(404, Buffer.from(text)).ok).toBe(false);
  });

  it('is not copied if it is compact ASCII', () => {
    const body = Buffer.from('{"id":"x","choices":[{"text":"a b"}]}');
    expect(embedAnswer(200, body).json).toBe(body);
  });

  it.each([
    '',
    ' ',
    'Bad gateway',
    '[1]',
    '"x"',
    '1',
    'null',
    '{"a":NaN}',
    '{"a":1}}',
    '{"a":1',
    'NaN',
    '{}{}',
    '{"a":01}',
    "{'a':1}",
    '{"a":"\n"}',
    '{"a":1,}',
    '\u00a0{}',
  ])('is wrapped as an error if it is %j', (text) => {
    expect(wrappedMessage(text)).toBe(text);
    expect(wrappedMessage(text, 502)).toBe(text);
  });

  it('is wrapped as an error if it begins with a BOM or is not UTF-8', () => {
    expect(wrappedMessage('\ufeff{}')).toBe('\ufeff{}');
    const invalid = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3]), Buffer.from('"}')]);
    expect(wrappedMessage(invalid)).toBe('{"a":"\ufffd"}');
    expect(wrappedMessage(Buffer.from([0x7b, 0xff, 0x7d]))).toBe('{\ufffd}');
  });

  it('is wrapped with its first 2,000 whole characters', () => {
    expect(wrappedMessage('x'.repeat(5000))).toBe('x'.repeat(2000));
    expect(wrappedMessage(`x${'😀'.repeat(3000)}`)).toBe(`x${'😀'.repeat(1999)}`);
  });

  it('is one line of ASCII with the same meaning for any JSON object', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { maxKeys: 6 }),
        fc.constantFrom('', ' ', '\t', '  ', '\n'),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent);
          const json = embedded(text);
          expect(json).toMatch(/^[\x20-\x7e\x7f]*$/);
          expect(JSON.parse(json)).toEqual(JSON.parse(text));
          expect(json).toHaveLength(embedded(JSON.stringify(object)).length);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('has a model only if it is output', () => {
    const body = Buffer.from('{"model":"m-1"}');
    expect(embedAnswer(200, body).model).toBe('m-1');
    expect(embedAnswer(400, body).model).toBeNull();
    expect(embedAnswer(200, Buffer.from('{"model":7}')).model).toBeNull();
  });
});

describe('the usage of an answer', () => {
  const usage = (value: unknown, status = 200) =>
    embedAnswer(status, Buffer.from(JSON.stringify({ usage: value }))).usage;

  it('is read under the names of chat completions', () => {
    const reported = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 16,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    const expected = {
      inputTokens: 10,
      cachedTokens: 4,
      outputTokens: 5,
      reasoningTokens: 3,
      totalTokens: 16,
    };
    expect(usage(reported)).toEqual(expected);
    expect(usage(reported, 500)).toEqual(NO_USAGE);
  });

  it('is read under the names of responses, and a missing total is the sum', () => {
    const reported = {
      input_tokens: 7,
      output_tokens: 2,
      input_tokens_details: { cached_tokens: 1 },
      output_tokens_details: { reasoning_tokens: 1 },
    };
    expect(usage(reported)).toEqual({
      inputTokens: 7,
      cachedTokens: 1,
      outputTokens: 2,
      reasoningTokens: 1,
      totalTokens: 9,
    });
  });

  it('counts absent, null and invalid values as 0', () => {
    expect(usage(undefined)).toEqual(NO_USAGE);
    expect(usage(null)).toEqual(NO_USAGE);
    expect(usage('many')).toEqual(NO_USAGE);
    const odd = { prompt_tokens: -1, completion_tokens: 'x', prompt_tokens_details: null };
    expect(usage(odd)).toEqual(NO_USAGE);
    const huge = { prompt_tokens: 1e300, completion_tokens: 2 ** 53, total_tokens: -1e300 };
    expect(usage(huge)).toEqual(NO_USAGE);
  });

  it.each<[string, unknown, number[]]>([
    ['a list', [1, 2], [0, 0, 0]],
    ['a boolean', true, [0, 0, 0]],
    ['nothing', {}, [0, 0, 0]],
    ['texts', { prompt_tokens: '5', completion_tokens: '3', total_tokens: '8' }, [0, 0, 0]],
    ['a negative input', { prompt_tokens: -5, completion_tokens: 4 }, [0, 4, 4]],
    ['fractions', { prompt_tokens: 1.7, completion_tokens: 2.2, total_tokens: 3.9 }, [1, 2, 3]],
    ['a total alone', { total_tokens: 9 }, [0, 0, 9]],
    ['a null total', { prompt_tokens: 2, completion_tokens: 3, total_tokens: null }, [2, 3, 5]],
    ['a total of its own', { prompt_tokens: 2, completion_tokens: 3, total_tokens: 9 }, [2, 3, 9]],
    ['an input alone, as embeddings do', { prompt_tokens: 8, total_tokens: 8 }, [8, 0, 8]],
    ['both namings', { prompt_tokens: 1, input_tokens: 7, output_tokens: 2 }, [1, 2, 3]],
    ['32 bits and more', { input_tokens: 2 ** 32, output_tokens: 1 }, [2 ** 32, 1, 2 ** 32 + 1]],
  ])('counts input, output and total of %s', (_what, reported, counts) => {
    const { inputTokens, outputTokens, totalTokens } = usage(reported);
    expect([inputTokens, outputTokens, totalTokens]).toEqual(counts);
  });

  it.each<[unknown, unknown, number[]]>([
    [null, null, [0, 0]],
    [{}, {}, [0, 0]],
    [{ cached_tokens: null }, { reasoning_tokens: '3' }, [0, 0]],
    [{ cached_tokens: 4 }, { reasoning_tokens: 2 }, [4, 2]],
    ['x', [1], [0, 0]],
  ])('has details %j and %j', (input, output, [cached, reasoning]) => {
    for (const [a, b] of [
      ['prompt_tokens_details', 'completion_tokens_details'],
      ['input_tokens_details', 'output_tokens_details'],
    ] as const) {
      const counted = usage({ [a]: input, [b]: output });
      expect([counted.cachedTokens, counted.reasoningTokens]).toEqual([cached, reasoning]);
    }
  });
});

describe('a large or deep answer', () => {
  it.each([
    ['a million levels', '['.repeat(1_000_000) + ']'.repeat(1_000_000)],
    ['a million arrays', `[${'[],'.repeat(1_000_000)}1]`],
    ['a million members', `{${Array.from({ length: 1_000_000 }, (_, i) => `"${i}":1`).join()}}`],
  ])('is checked without being parsed: %s', (_name, value) => {
    const usage = '{"prompt_tokens":3,"completion_tokens":4}';
    const body = Buffer.from(`{"x":${value},"\\u0075sage":${usage},"model":"m"}`);
    const parse = jest.spyOn(JSON, 'parse');
    const answer = embedAnswer(200, body);
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    parse.mockRestore();
    expect(answer).toMatchObject({ ok: true, model: 'm' });
    expect(answer.usage).toMatchObject({ inputTokens: 3, outputTokens: 4, totalTokens: 7 });
    expect(answer.json === body).toBe(true);
    expect(longest).toBe(usage.length);
  });

  it('ignores a usage that is not an object of counts', () => {
    const body = Buffer.from(`{"usage":{"prompt_tokens":3,"x":[${'[],'.repeat(30_000)}1]}}`);
    expect(embedAnswer(200, body)).toMatchObject({ ok: true, usage: NO_USAGE });
  });
});
