import fc from 'fast-check';
import { encodeInputLine } from '../../../providers/openai/input-line';
import { readResultLine } from '../../../providers/openai/result-line';

const encode = (body: string, model: string | null, namesUrl = true) =>
  encodeInputLine(
    { wireId: 'n1', endpoint: '/v1/x', model, body: Buffer.from(body) },
    namesUrl,
  ).toString();
const mask = (text: string) => text.replaceAll('s3cret', '***');
const read = (line: string) => readResultLine(Buffer.from(line), mask);
const HEAD = '{"custom_id":"n1","method":"POST","url":"/v1/x","body":';

describe('a line of an input file', () => {
  it('names neither method nor URL for hosts whose lines have none', () => {
    expect(encode('{"model":"a"}', 'b', false)).toBe('{"custom_id":"n1","body":{"model":"b"}}');
  });

  it.each([
    ['{"model":"a", "n" : 1e2}', null, '{"model":"a", "n" : 1e2}'],
    ['{"model":"a", "n" : 1e2}', 'b', '{"model":"b", "n" : 1e2}'],
    ['{ "x":{"model":"no"},"model" : "a" }', 'b"', '{ "x":{"model":"no"},"model" : "b\\"" }'],
    ['{"mod\\u0065l":"a"}', 'b', '{"mod\\u0065l":"b"}'],
    ['{"input":"x"}', 'b', '{"model":"b","input":"x"}'],
    ['{ }', 'b', '{"model":"b" }'],
  ])('keeps the bytes of %s with the model %p', (body, model, expected) => {
    expect(encode(body, model)).toBe(`${HEAD}${expected}}`);
  });

  it('is one line of JSON with every member but the model unchanged', () => {
    const body = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(body, fc.string(), fc.boolean(), (given, model, isMapped) => {
        const line = encode(JSON.stringify(given), isMapped ? model : null);
        expect(line).not.toContain('\n');
        const expected = isMapped ? { ...given, model } : given;
        const { body: sent } = JSON.parse(line) as { body: object };
        expect(sent).toEqual(JSON.parse(JSON.stringify(expected)));
      }),
    );
  });
});

describe('a line of a result file', () => {
  it('keeps the bytes of an answer', () => {
    const body = '{"a": 1.0, "b":"\\u00e9"}';
    const line = `{"id":"r","custom_id":"n1","response":{"status_code":200,"request_id":"q","body":${body}},"error":null}`;
    expect(read(line)).toEqual({
      kind: 'answer',
      wireId: 'n1',
      status: 200,
      requestId: 'q',
      body: Buffer.from(body),
    });
  });

  it('keeps an error of the model with its status', () => {
    const line =
      '{"custom_id":"n1","response":{"status_code":429,"body":{"error":{}}},"error":{"code":"x"}}';
    expect(read(line)).toMatchObject({ kind: 'answer', status: 429, requestId: null });
  });

  it.each([
    ['batch_expired', 'expired'],
    ['batch_cancelled', 'cancelled'],
  ])('with the code %s was not run', (code, reason) => {
    const line = `{"custom_id":"n1","response":null,"error":{"code":"${code}","message":"m"}}`;
    expect(read(line)).toEqual({ kind: 'unanswered', wireId: 'n1', reason });
  });

  it('with a code that is the name of a member of every object has failed', () => {
    const line = '{"custom_id":"n1","error":{"code":"constructor","message":"m"}}';
    expect(read(line)).toMatchObject({ kind: 'failed' });
  });

  it('with another error failed, in masked words', () => {
    const line = '{"custom_id":"n1","error":{"code":"broken","message":"at s3cret"}}';
    expect(read(line)).toEqual({
      kind: 'failed',
      wireId: 'n1',
      error: { code: 'broken', message: 'at ***' },
    });
  });

  it.each([
    'no json',
    '[]',
    '{}',
    '{"custom_id":1,"response":{"status_code":200,"body":{}}}',
    '{"custom_id":"n1"}',
    '{"custom_id":"n1","response":null,"error":null}',
    '{"custom_id":"n1","response":{"status_code":200}}',
    '{"custom_id":"n1","response":{"status_code":"200","body":{}}}',
    '{"custom_id":"n1","response":{"status_code":99,"body":{}}}',
    '{"custom_id":"n1","response":{"status_code":200,"body":{}}',
  ])('is not %s', (line) => {
    expect(read(line)).toBeNull();
  });

  it('never throws', () => {
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((json) => json.slice(1)),
    );
    fc.assert(
      fc.property(text, text, (a, b) => {
        read(a);
        read(`{"custom_id":"n1","response":{"status_code":${a},"body":${b}}}`);
        read(`{"custom_id":${a},"error":${b}}`);
      }),
    );
  });
});
