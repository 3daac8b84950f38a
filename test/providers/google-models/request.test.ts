import fc from 'fast-check';
import { TranslationScope, translating } from '../../../providers/chat/scope';
import type { Json } from '../../../providers/chat/values';
import { generateContentRequest } from '../../../providers/google-models/request';

const translate = (body: Json, dropParams = false, extraBody: Json = {}) =>
  translating(() => generateContentRequest(body, new TranslationScope(dropParams), extraBody));
const messages = [{ role: 'user', content: 'Why is the sky blue?' }];
const contents = [{ role: 'user', parts: [{ text: 'Why is the sky blue?' }] }];
const ask = (members: object, dropParams = false, extraBody: Json = {}) =>
  translate({ model: 'm', messages, ...members }, dropParams, extraBody);
const tool = (parameters?: object) => ({
  type: 'function',
  function: { name: 'get_weather', description: 'Weather of a place', parameters },
});

it('translates a question as the published example has it', () => {
  expect(ask({})).toEqual({ contents });
});

it('puts settings of generation into generationConfig', () => {
  const settings = {
    ...{ max_tokens: 100, temperature: 1.5, top_p: 0.9, seed: 7, stop: ['a', 'b'] },
    ...{ presence_penalty: -0.5, frequency_penalty: 0.25 },
  };
  expect(ask(settings)).toEqual({
    contents,
    generationConfig: {
      ...{ maxOutputTokens: 100, temperature: 1.5, topP: 0.9, seed: 7 },
      ...{ presencePenalty: -0.5, frequencyPenalty: 0.25, stopSequences: ['a', 'b'] },
    },
  });
});

it('joins system messages with blank lines, and neighbours of one role', () => {
  const conversation = [
    { role: 'system', content: 'Be brief.' },
    { role: 'developer', content: 'Be kind.' },
    { role: 'user', content: 'Hi' },
    { role: 'user', content: 'Are you there?' },
    { role: 'assistant', content: 'Yes.' },
  ];
  expect(ask({ messages: conversation })).toEqual({
    systemInstruction: { parts: [{ text: 'Be brief.\n\nBe kind.' }] },
    contents: [
      { role: 'user', parts: [{ text: 'Hi' }, { text: 'Are you there?' }] },
      { role: 'model', parts: [{ text: 'Yes.' }] },
    ],
  });
});

it('refuses a late system message, or moves it to the front', () => {
  const late = { messages: [...messages, { role: 'system', content: 'Be brief.' }] };
  expect(ask(late)).toMatchObject({ kind: 'refused', param: 'messages[1]' });
  const systemInstruction = { parts: [{ text: 'Be brief.' }] };
  expect(ask(late, true)).toEqual({ contents, systemInstruction });
});

it('translates images and audio that a message carries, and refuses what it only names', () => {
  const part = (one: object) => ask({ messages: [{ role: 'user', content: [one] }] });
  expect(part({ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } })).toEqual({
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] }],
  });
  expect(part({ type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } })).toEqual({
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'audio/mp3', data: 'AA==' } }] }],
  });
  expect(
    part({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
  ).toMatchObject({ kind: 'refused', param: 'messages[0].content[0].image_url.url' });
  expect(part({ type: 'file', file: { file_id: 'file-1' } })).toMatchObject({ kind: 'refused' });
});

it('translates calls of functions and their results', () => {
  const call = (id: string, place: string) => ({
    id,
    type: 'function',
    function: { name: 'get_weather', arguments: JSON.stringify({ place }) },
  });
  const conversation = [
    ...messages,
    { role: 'assistant', content: null, tool_calls: [call('c1', 'Oslo'), call('c2', 'Rome')] },
    { role: 'tool', tool_call_id: 'c2', content: '{"celsius":21}' },
    { role: 'tool', tool_call_id: 'c1', content: 'snow' },
  ];
  const name = 'get_weather';
  expect(ask({ messages: conversation })).toEqual({
    contents: [
      ...contents,
      {
        role: 'model',
        parts: [
          { functionCall: { name, args: { place: 'Oslo' } } },
          { functionCall: { name, args: { place: 'Rome' } } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { name, response: { celsius: 21 } } },
          { functionResponse: { name, response: { output: 'snow' } } },
        ],
      },
    ],
  });
  const unknown = [...messages, { role: 'tool', tool_call_id: 'c9', content: 'snow' }];
  expect(ask({ messages: unknown })).toMatchObject({ param: 'messages[1].tool_call_id' });
});

it.each<[unknown, object | undefined]>([
  [null, undefined],
  ['auto', { functionCallingConfig: { mode: 'AUTO' } }],
  ['none', { functionCallingConfig: { mode: 'NONE' } }],
  ['required', { functionCallingConfig: { mode: 'ANY' } }],
  [
    { type: 'function', function: { name: 'get_weather' } },
    { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['get_weather'] } },
  ],
])('translates the tool choice %j', (choice, toolConfig) => {
  const parameters = { type: 'object', properties: { place: { type: 'string' } } };
  expect(ask({ tools: [tool(parameters)], tool_choice: choice })).toEqual({
    contents,
    tools: [
      {
        functionDeclarations: [
          {
            ...{ name: 'get_weather', description: 'Weather of a place' },
            parameters: {
              type: 'OBJECT',
              properties: { place: { type: 'STRING' } },
              propertyOrdering: ['place'],
            },
          },
        ],
      },
    ],
    ...(toolConfig === undefined ? {} : { toolConfig }),
  });
});

it('leaves out the parameters of a function that has none', () => {
  const declared = [{ name: 'get_weather', description: 'Weather of a place' }];
  const expected = { contents, tools: [{ functionDeclarations: declared }] };
  expect(ask({ tools: [tool({ type: 'object', properties: {} })] })).toEqual(expected);
  expect(ask({ tools: [tool()] })).toEqual(expected);
});

it.each<[string, object, object | null]>([
  ['stop', { stop: ['1', '2', '3', '4', '5', '6'] }, { stopSequences: ['1', '2', '3', '4', '5'] }],
  ['parallel_tool_calls', { parallel_tool_calls: false, tools: [tool()] }, null],
  ['logit_bias', { logit_bias: { 1: 2 } }, null],
  ['reasoning_effort', { reasoning_effort: 'high' }, null],
  ['n', { n: 2 }, null],
])('refuses %s, or drops it if asked to', (param, members, generationConfig) => {
  expect(ask(members)).toMatchObject({ kind: 'refused', param });
  const dropped = ask(members, true);
  expect(dropped).toMatchObject({ contents });
  expect((dropped as Json)['generationConfig']).toEqual(generationConfig ?? undefined);
});

it('asks for JSON, with a schema if the request has one', () => {
  expect(ask({ response_format: { type: 'json_object' } })).toEqual({
    contents,
    generationConfig: { responseMimeType: 'application/json' },
  });
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    required: ['b', 'a'],
    additionalProperties: false,
    properties: {
      b: { type: ['string', 'null'], enum: ['x', 'y', null], description: 'd' },
      a: { type: 'array', minItems: 1, items: { anyOf: [{ type: 'integer' }, { type: 'null' }] } },
    },
  };
  expect(ask({ response_format: { type: 'json_schema', json_schema: { schema } } })).toEqual({
    contents,
    generationConfig: {
      responseMimeType: 'application/json',
      responseSchema: {
        type: 'OBJECT',
        required: ['b', 'a'],
        properties: {
          b: { type: 'STRING', nullable: true, enum: ['x', 'y'], description: 'd' },
          a: {
            type: 'ARRAY',
            minItems: 1,
            items: { anyOf: [{ type: 'INTEGER' }], nullable: true },
          },
        },
        propertyOrdering: ['b', 'a'],
      },
    },
  });
});

it.each<[string, object, string, object | null]>([
  ['$ref', { $ref: '#/$defs/a' }, '.$ref', {}],
  ['oneOf', { type: 'string', oneOf: [] }, '.oneOf', { type: 'STRING' }],
  [
    'open objects',
    { type: 'object', additionalProperties: {} },
    '.additionalProperties',
    { type: 'OBJECT' },
  ],
  ['enums of numbers', { type: 'integer', enum: [1, 2] }, '.enum', { type: 'INTEGER' }],
  ['several types', { type: ['string', 'integer'] }, '.type', null],
  ['a schema that is none', { items: true }, '.items', null],
])('refuses schemas with %s, or drops the keyword', (_, schema, at, dropped) => {
  const members = { response_format: { type: 'json_schema', json_schema: { schema } } };
  const param = `response_format.json_schema.schema${at}`;
  expect(ask(members)).toMatchObject({ kind: 'refused', param });
  const loose = ask(members, true);
  if (dropped === null) expect(loose).toMatchObject({ kind: 'refused', param });
  else expect(loose).toMatchObject({ generationConfig: { responseSchema: dropped } });
});

it('merges extra members into the request', () => {
  const extra = { generationConfig: { thinkingConfig: { thinkingBudget: 0 } }, labels: { a: 'b' } };
  expect(ask({ temperature: 1 }, false, extra)).toEqual({
    contents,
    generationConfig: { temperature: 1, thinkingConfig: { thinkingBudget: 0 } },
    labels: { a: 'b' },
  });
});

it('makes a request or a refusal of any body', () => {
  const name = fc.constantFrom(
    ...['messages', 'role', 'content', 'type', 'text', 'image_url', 'url', 'tools', 'function'],
    ...['name', 'parameters', 'properties', 'items', 'anyOf', 'enum', 'tool_calls', 'arguments'],
    ...['tool_choice', 'response_format', 'json_schema', 'schema', 'stop', 'tool_call_id', 'id'],
  );
  const word = fc.constantFrom('user', 'system', 'tool', 'assistant', 'function', 'text', '{}');
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 6 },
      fc.oneof(fc.jsonValue({ maxDepth: 1 }), word, fc.constant(null)),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(name, tie('any'), { maxKeys: 5 }),
    ),
  }));
  const message = fc.record(
    { role: word, content: any, tool_calls: any },
    { requiredKeys: ['role'] },
  );
  const body = fc.record(
    { messages: fc.array(message), tools: any, tool_choice: any, response_format: any, stop: any },
    { requiredKeys: ['messages'] },
  );
  fc.assert(
    fc.property(body, fc.boolean(), (given, dropParams) => {
      const result = translate(given, dropParams);
      if ('kind' in result) expect(result).toMatchObject({ kind: 'refused' });
      else expect(result['contents']).not.toHaveLength(0);
      expect(JSON.stringify(result)).not.toMatch(/\n/);
    }),
    { numRuns: 500 },
  );
});

it('refuses a forced call without functions', () => {
  const none = { kind: 'refused', param: 'tool_choice' };
  expect(ask({ tool_choice: 'required' })).toMatchObject(none);
  expect(ask({ tool_choice: { type: 'function', function: { name: 'f' } } }, true)).toMatchObject(
    none,
  );
  expect(ask({ tool_choice: 'auto' })).toEqual({ contents });
});

it('keeps the result of a function as a text if it is too deep to be written again', () => {
  const content = '['.repeat(20_000) + ']'.repeat(20_000);
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const conversation = [
    ...messages,
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content },
  ];
  expect(JSON.stringify(ask({ messages: conversation }))).toContain(
    JSON.stringify({ output: content }),
  );
});
