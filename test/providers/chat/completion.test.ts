import { chatCompletion, chatError, type ChatAnswer } from '../../../providers/chat/completion';

const ANSWER: ChatAnswer = {
  ...{ id: 'msg_1', created: 7, model: 'm', content: 'hello', reasoning: null, toolCalls: [] },
  finishReason: 'stop',
  usage: { prompt: 10, cached: 4, completion: 3, reasoning: null },
};
const written = (over: Partial<ChatAnswer> = {}): unknown =>
  JSON.parse(chatCompletion({ ...ANSWER, ...over }).toString());

it('writes a chat completion with one choice', () => {
  expect(written()).toEqual({
    ...{ id: 'msg_1', object: 'chat.completion', created: 7, model: 'm' },
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'hello', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 },
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: {},
    },
  });
});

it('writes calls of functions, with their arguments as text', () => {
  const toolCalls = [{ id: 'c', name: 'f', arguments: { a: 1 } }];
  const usage = { ...ANSWER.usage, reasoning: 2 };
  expect(
    written({ content: null, reasoning: 'hm', toolCalls, finishReason: 'tool_calls', usage }),
  ).toMatchObject({
    choices: [
      {
        message: {
          ...{ content: null, reasoning_content: 'hm' },
          tool_calls: [
            { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { completion_tokens_details: { reasoning_tokens: 2 } },
  });
});

it('writes an error as OpenAI does', () => {
  const error = { type: 'server_error', message: 'The provider failed.', code: 'overloaded' };
  expect(JSON.parse(chatError(error).toString())).toEqual({ error: { ...error, param: null } });
});
