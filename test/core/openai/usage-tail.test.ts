import { usageOfEventTail, usageOfJsonTail } from '../../../core/openai/usage-tail';

const USAGE = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const READ = { inputTokens: 3, outputTokens: 5, totalTokens: 8 };
const json = (value: unknown) => Buffer.from(JSON.stringify(value));

describe('the usage at the end of a JSON answer', () => {
  it.each([
    ['as the last member', { id: 'a', usage: USAGE }],
    ['before other members', { usage: USAGE, metadata: { a: ['}', '"'] }, prompt_logprobs: null }],
    ['with text that looks like one', { text: '"usage":{"prompt_tokens":9}', usage: USAGE }],
    ['before text that looks like one', { usage: USAGE, text: '"usage":{"prompt_tokens":9}' }],
    ['beside a nested one', { usage: USAGE, choices: [{ usage: { prompt_tokens: 9 } }] }],
  ])('is found %s', (_, answer) => {
    expect(usageOfJsonTail(json(answer))).toMatchObject(READ);
  });

  it('is found if only the end of the answer is known, with blanks anywhere', () => {
    const tail = Buffer.from(
      'cut off"text", ] ,\n "usage" : {"prompt_tokens" : 3 }\n , "x": 1 }\n',
    );
    expect(usageOfJsonTail(tail)).toMatchObject({ inputTokens: 3 });
  });

  it('takes the last of repeated members, as JSON.parse does', () => {
    const tail = Buffer.from('{"usage":{"prompt_tokens":1},"usage":{"prompt_tokens":2}}');
    expect(usageOfJsonTail(tail)).toMatchObject({ inputTokens: 2 });
  });

  it.each([
    ['nothing', ''],
    ['no such member', '{"id":"a"}'],
    ['null', '{"usage":null}'],
    ['only a nested one', '{"choices":[{"usage":{"prompt_tokens":9}}]}'],
    ['one level below', '{"response":{"usage":{"prompt_tokens":9}}}'],
    ['a string of that name', '{"a":"usage","b":{"prompt_tokens":9}}'],
    ['a name that ends so', String.raw`{"a\"usage":{"prompt_tokens":9}}`],
    ['an answer that is cut', '{"usage":{"prompt_tokens":9'],
    ['an answer that is cut behind it', '{"usage":{"prompt_tokens":9},"a":"b'],
    ['broken JSON', '{"usage":{"prompt_tokens":nine}}'],
  ])('is not found in %s', (_, answer) => {
    expect(usageOfJsonTail(Buffer.from(answer))).toBeNull();
  });
});

describe('the usage at the end of an event stream', () => {
  it.each([
    [
      'in the last chunk',
      `data: {"choices":[],"usage":${JSON.stringify(USAGE)}}\n\ndata: [DONE]\n\n`,
    ],
    [
      'before chunks without',
      `data: {"usage":${JSON.stringify(USAGE)}}\r\n\r\ndata: {"usage":null}\r\n`,
    ],
    [
      'in the whole response',
      `data: {"type":"x","response":{"usage":${JSON.stringify(USAGE)}}}\n\n`,
    ],
  ])('is found %s', (_, stream) => {
    expect(usageOfEventTail(Buffer.from(stream))).toMatchObject(READ);
  });

  it('is the last one if every chunk has one', () => {
    const chunk = (count: number) => `data: {"usage":{"completion_tokens":${count}}}\n\n`;
    const stream = Buffer.from([1, 2, 3].map(chunk).join(''));
    expect(usageOfEventTail(stream)).toMatchObject({ outputTokens: 3 });
  });

  it('is not found deeper, or in an event that is cut', () => {
    const deep = 'data: {"a":{"b":{"usage":{"completion_tokens":9}}}}\n\n';
    expect(usageOfEventTail(Buffer.from(deep))).toBeNull();
    expect(usageOfEventTail(Buffer.from('data: {"usage":{"completion_tokens":9}'))).toBeNull();
  });
});
