import fc from 'fast-check';
import { readChatRequest, type ChatRequest } from '../../../providers/chat/request';
import { TranslationScope, translating, type Refusal } from '../../../providers/chat/scope';
import type { Json } from '../../../providers/chat/values';

const read = (body: Json, dropParams = false): ChatRequest | Refusal =>
  translating(() => readChatRequest(body, new TranslationScope(dropParams)));
const messages = [{ role: 'user', content: 'hi' }];
const ask = (members: object, dropParams?: boolean) => read({ messages, ...members }, dropParams);
const parts = (...content: object[]) => ask({ messages: [{ role: 'user', content }] });

it('reads what formats have in common', () => {
  const tool = { name: 'f', description: 'd', parameters: { type: 'object' } };
  const request = ask({
    ...{ model: 'm', max_tokens: 5, temperature: 0.5, top_p: 1, stop: 'x', seed: 3 },
    ...{ presence_penalty: 0, frequency_penalty: 1, parallel_tool_calls: false },
    tools: [{ type: 'function', function: { ...tool, strict: true } }],
    tool_choice: { type: 'function', function: { name: 'f' } },
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'r', schema: { type: 'object' } },
    },
  });
  expect(request).toEqual({
    messages: [
      {
        role: 'user',
        parts: [{ kind: 'text', text: 'hi', path: 'messages[0].content' }],
        path: 'messages[0]',
      },
    ],
    ...{ maxTokens: { value: 5, param: 'max_tokens' }, temperature: 0.5, topP: 1, stop: ['x'] },
    ...{ seed: 3, presencePenalty: 0, frequencyPenalty: 1, parallelToolCalls: false },
    tools: [{ ...tool, isStrict: true, path: 'tools[0]' }],
    toolChoice: { kind: 'tool', name: 'f' },
    responseFormat: { kind: 'json_schema', name: 'r', schema: { type: 'object' } },
  });
});

it('prefers max_completion_tokens', () => {
  expect(ask({ max_tokens: 5, max_completion_tokens: 7 })).toMatchObject({
    maxTokens: { value: 7, param: 'max_completion_tokens' },
  });
});

it('reads a conversation with calls of functions', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } };
  const conversation = [
    {
      role: 'developer',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ];
  expect(ask({ messages: conversation })).toMatchObject({
    messages: [
      { role: 'system', text: 'a\nb' },
      { role: 'assistant', text: null, toolCalls: [{ id: 'c1', name: 'f', arguments: { a: 1 } }] },
      { role: 'tool', toolCallId: 'c1', text: 'done' },
    ],
  });
});

it('tells images with bytes from images with an address', () => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url } });
  expect(parts(image('data:image/png;base64,QUJD'), image('https://x.test/a.png'))).toMatchObject({
    messages: [
      {
        parts: [
          { image: { kind: 'data', mediaType: 'image/png', data: 'QUJD' } },
          {
            image: { kind: 'url', url: 'https://x.test/a.png' },
            path: 'messages[0].content[1].image_url',
          },
        ],
      },
    ],
  });
});

it.each([
  [{ user: 'u', metadata: {}, store: true, service_tier: 'auto', safety_identifier: 's' }],
  [{ stream: false, stream_options: null, n: 1, logprobs: false, modalities: ['text'] }],
  [{ logit_bias: null, reasoning_effort: null, response_format: { type: 'text' } }],
])('leaves out %j', (members) => {
  expect(ask(members)).toEqual(ask({}));
});

it.each<[object, string]>([
  [{ n: 2 }, 'n'],
  [{ logprobs: true }, 'logprobs'],
  [{ logit_bias: {} }, 'logit_bias'],
  [{ reasoning_effort: 'low' }, 'reasoning_effort'],
  [{ modalities: ['text', 'audio'] }, 'modalities'],
  [{ unheard_of: 1 }, 'unheard_of'],
])('refuses %j by the path of the member, or drops it if it may', (members, param) => {
  expect(ask(members)).toMatchObject({ kind: 'refused', param });
  expect(ask(members, true)).not.toHaveProperty('kind');
});

it.each<[object, string]>([
  [{ stream: true }, 'stream'],
  [{ messages: [] }, 'messages'],
  [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages[0].content[0].type'],
  [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
  [{ messages: [{ role: 'assistant' }] }, 'messages[0].content'],
  [{ temperature: 'hot' }, 'temperature'],
  [{ stop: [1] }, 'stop[0]'],
  [{ tools: [{ type: 'custom' }] }, 'tools[0].type'],
  [{ tool_choice: 'maybe' }, 'tool_choice'],
  [{ response_format: { type: 'xml' } }, 'response_format.type'],
  [
    {
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{' } }],
        },
      ],
    },
    'messages[0].tool_calls[0].function.arguments',
  ],
])('refuses %j also if members may be dropped', (members, param) => {
  expect(ask(members, true)).toMatchObject({ kind: 'refused', param });
});

it('keeps a number within bounds, or refuses it', () => {
  const within = (dropParams: boolean) =>
    translating(() => new TranslationScope(dropParams).within('temperature', 1.5, [0, 1]));
  expect(within(false)).toMatchObject({ kind: 'refused', param: 'temperature' });
  expect(within(true)).toBe(1);
});

it('gives a structure or a refusal for any JSON object', () => {
  const names = ['messages', 'tools', 'tool_choice', 'stop', 'response_format', 'n', 'max_tokens'];
  const shapes = fc.oneof(
    fc.jsonValue(),
    fc.array(
      fc.record({ role: fc.constantFrom('user', 'assistant', 'tool', 1), content: fc.jsonValue() }),
    ),
    fc.array(fc.record({ type: fc.constant('function'), function: fc.jsonValue() })),
  );
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), shapes), fc.boolean(), (body, drops) => {
      const result = read(body, drops);
      expect('kind' in result ? result.param.length : result.messages.length).toBeGreaterThan(0);
    }),
    { numRuns: 500 },
  );
});

describe('JSON that is too deep to be written again', () => {
  const deep = (levels: number) => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);
  const called = (json: string) => ({
    messages: [
      ...messages,
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: json } }],
      },
    ],
  });

  it('refuses the line if it is in a member', () => {
    const schema = JSON.parse(deep(9_000)) as object;
    expect(
      ask({ response_format: { type: 'json_schema', json_schema: { schema } } }),
    ).toMatchObject({ kind: 'refused', param: 'response_format' });
  });

  it('refuses the line if it is in the arguments of a call', () => {
    expect(ask(called(deep(9_000)))).toMatchObject({
      kind: 'refused',
      param: 'messages[1].tool_calls[0].function.arguments',
    });
    expect(ask(called(deep(100)))).not.toHaveProperty('kind');
  });
});

it('refuses or drops the name of a participant', () => {
  const named = { messages: [{ role: 'user', name: 'Ann', content: 'hi' }] };
  expect(ask(named)).toMatchObject({ kind: 'refused', param: 'messages[0].name' });
  expect(ask(named, true)).not.toHaveProperty('kind');
});
