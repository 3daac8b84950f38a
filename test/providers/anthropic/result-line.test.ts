import fc from 'fast-check';
import { readResultLine } from '../../../providers/anthropic/result-line';

const CONTEXT = {
  ...{ model: 'given', createdSec: 1_767_225_600 },
  mask: (text: string) => text.replaceAll('s3cret', '***'),
};
const read = (line: unknown) =>
  readResultLine(Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)), CONTEXT);
const result = (one: object) => read({ custom_id: 'n1', result: one });

function answer(one: object) {
  const line = result(one);
  if (line?.kind !== 'answer') throw new Error(line?.kind);
  return { ...line, body: JSON.parse(line.body.toString()) as Record<string, unknown> };
}

const MESSAGE = {
  ...{ id: 'msg_01', type: 'message', role: 'assistant', model: 'claude' },
  content: [{ type: 'text', text: 'About 384,000 km.' }],
  ...{ stop_reason: 'end_turn', stop_sequence: null },
  usage: { input_tokens: 11, output_tokens: 9, service_tier: 'batch' },
};
const succeeded = (changes: object = {}) =>
  answer({ type: 'succeeded', message: { ...MESSAGE, ...changes } });

function choice(changes: object): { message: object; finish_reason: string } {
  const { body } = succeeded(changes);
  return (body['choices'] as never[])[0] as never;
}

it('translates a message as the published example has it', () => {
  expect(succeeded()).toEqual({
    ...{ kind: 'answer', wireId: 'n1', status: 200, requestId: null },
    body: {
      ...{ id: 'msg_01', object: 'chat.completion', created: 1_767_225_600, model: 'given' },
      choices: [
        {
          ...{ index: 0, logprobs: null, finish_reason: 'stop' },
          message: { role: 'assistant', content: 'About 384,000 km.', refusal: null },
        },
      ],
      usage: {
        ...{ prompt_tokens: 11, completion_tokens: 9, total_tokens: 20 },
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: {},
      },
    },
  });
});

it('counts tokens of the cache within the prompt, and thinking within the completion', () => {
  const usage = {
    ...{ input_tokens: 10, cache_read_input_tokens: 200, cache_creation_input_tokens: 30 },
    ...{ output_tokens: 50, output_tokens_details: { thinking_tokens: 40 } },
  };
  expect(succeeded({ usage }).body['usage']).toEqual({
    ...{ prompt_tokens: 240, completion_tokens: 50, total_tokens: 290 },
    prompt_tokens_details: { cached_tokens: 200 },
    completion_tokens_details: { reasoning_tokens: 40 },
  });
});

it('separates thinking from the text, and joins texts', () => {
  const content = [
    { type: 'thinking', thinking: 'Hm. ', signature: 'x' },
    { type: 'redacted_thinking', data: 'y' },
    { type: 'text', text: 'Hel' },
    { type: 'text', text: 'lo' },
  ];
  expect(choice({ content }).message).toEqual({
    ...{ role: 'assistant', content: 'Hello', refusal: null, reasoning_content: 'Hm. ' },
  });
});

it('translates calls of functions', () => {
  const use = (id: string, city: string) => ({ type: 'tool_use', id, name: 'f', input: { city } });
  const content = [use('toolu_1', 'Oslo'), use('toolu_2', 'Rome')];
  const call = (id: string, city: string) => ({
    ...{ id, type: 'function', function: { name: 'f', arguments: `{"city":"${city}"}` } },
  });
  expect(choice({ content, stop_reason: 'tool_use' })).toMatchObject({
    finish_reason: 'tool_calls',
    message: { content: null, tool_calls: [call('toolu_1', 'Oslo'), call('toolu_2', 'Rome')] },
  });
  const both = [{ type: 'text', text: 'Let me see.' }, ...content];
  expect(choice({ content: both }).message).toMatchObject({ content: 'Let me see.' });
});

it.each([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
  ['pause_turn', 'stop'],
  ['a_new_reason', 'stop'],
])('translates the stop reason %s', (word, reason) => {
  expect(choice({ stop_reason: word }).finish_reason).toBe(reason);
});

it('answers a refusal without content with an empty text', () => {
  expect(choice({ stop_reason: 'refusal', content: [] })).toMatchObject({
    finish_reason: 'content_filter',
    message: { content: '' },
  });
});

it('takes the line id for a message without an id', () => {
  expect(succeeded({ id: undefined }).body).toMatchObject({ id: 'n1' });
});

const errored = (type: string, message: string) =>
  answer({
    type: 'errored',
    error: { type: 'error', error: { type, message }, request_id: 'req_1' },
  });

it.each<[string, number, string | null]>([
  ['invalid_request_error', 400, 'invalid_request_error'],
  ['authentication_error', 401, null],
  ['billing_error', 402, null],
  ['permission_error', 403, null],
  ['not_found_error', 404, 'not_found_error'],
  ['request_too_large', 413, 'request_too_large'],
  ['rate_limit_error', 429, null],
  ['api_error', 500, 'api_error'],
  ['timeout_error', 504, 'timeout_error'],
  ['overloaded_error', 529, 'overloaded_error'],
  ['a_new_error', 500, 'a_new_error'],
])('answers the error %s with status %i', (type, status, code) => {
  const { body, ...rest } = errored(type, 'organization acme');
  expect(rest).toMatchObject({ status, requestId: 'req_1' });
  expect(body).toMatchObject({ error: { code, param: null } });
  // Only what is said of the request is shown.
  expect(JSON.stringify(body).includes('acme')).toBe(status === 400 || status === 413);
});

it('says which lines did not run', () => {
  expect(result({ type: 'expired' })).toEqual({
    ...{ kind: 'unanswered', wireId: 'n1', reason: 'expired' },
  });
  expect(result({ type: 'canceled' })).toEqual({
    ...{ kind: 'unanswered', wireId: 'n1', reason: 'cancelled' },
  });
});

it('takes what it cannot read for a failure of the line, without its keys', () => {
  expect(result({ type: 's3cret' })).toMatchObject({
    kind: 'failed',
    error: { message: 'a result of the unknown type ***' },
  });
  expect(result({ type: 'succeeded', message: {} })).toMatchObject({ kind: 'failed' });
  expect(result({ type: 'errored', error: 'no' })).toMatchObject({ status: 500 });
});

it.each<[string, unknown]>([
  ['no JSON', '{"custom_id": "n'],
  ['no object', []],
  ['no result', { custom_id: 'n1' }],
  ['no id', { result: { type: 'expired' } }],
])('does not take a line with %s for a result', (_, line) => {
  expect(read(line)).toBeNull();
});

it('makes a result of any message', () => {
  const name = fc.constantFrom(
    ...['type', 'text', 'thinking', 'id', 'name', 'input', 'usage', 'input_tokens', 'content'],
    ...['output_tokens', 'output_tokens_details', 'thinking_tokens', 'stop_reason', 'error'],
  );
  const word = fc.constantFrom('text', 'thinking', 'tool_use', 'end_turn', 'error');
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      fc.oneof(fc.jsonValue({ maxDepth: 1 }), word),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(name, tie('any'), { maxKeys: 4 }),
    ),
  }));
  const type = fc.constantFrom('succeeded', 'errored');
  const message = fc.record({ content: any, usage: any, id: any, stop_reason: any });
  fc.assert(
    fc.property(type, fc.oneof(message, any), any, (kind, given, error) => {
      const line = result({ type: kind, message: given, error });
      expect(line?.wireId).toBe('n1');
      if (line?.kind === 'answer') {
        expect(() => JSON.parse(line.body.toString()) as unknown).not.toThrow();
      }
    }),
    { numRuns: 500 },
  );
});
