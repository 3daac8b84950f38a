import fc from 'fast-check';
import { encodeRecord } from '../../../providers/bedrock/request';
import type { TranslationOptions } from '../../../providers/provider';
import { STRICT } from '../calls';

const messages = [{ role: 'user', content: 'hi' }];
const encode = (body: object, translation: Partial<TranslationOptions> = {}) =>
  encodeRecord({
    wireId: 'n1',
    body: Buffer.from(JSON.stringify(body)),
    translation: { ...STRICT, ...translation },
  });
const inputOf = (body: object, translation?: Partial<TranslationOptions>): unknown => {
  const line = encode(body, translation);
  if (line.kind !== 'line') throw new Error(line.param);
  const record = JSON.parse(line.bytes.toString()) as { recordId: string; modelInput: unknown };
  expect(record.recordId).toBe('n1');
  return record.modelInput;
};
const refusalOf = (members: object) => {
  const line = encode({ messages, ...members });
  return line.kind === 'refused' ? line.param : null;
};

it('writes texts, images and limits as Converse has them', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,aGk=' } };
  const body = {
    model: 'm',
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'developer', content: 'and kind' },
      { role: 'user', content: [{ type: 'text', text: 'what is it?' }, image] },
      { role: 'user', content: 'please' },
      { role: 'assistant', content: 'a cat' },
      { role: 'user', content: 'sure?' },
    ],
    ...{ max_completion_tokens: 9, temperature: 0.5, top_p: 1, stop: ['END'] },
    ...{ n: 1, seed: null, user: 'u', presence_penalty: 0 },
  };
  expect(inputOf(body)).toEqual({
    system: [{ text: 'be brief\n\nand kind' }],
    messages: [
      {
        role: 'user',
        content: [
          { text: 'what is it?' },
          { image: { format: 'jpeg', source: { bytes: 'aGk=' } } },
          { text: 'please' },
        ],
      },
      { role: 'assistant', content: [{ text: 'a cat' }] },
      { role: 'user', content: [{ text: 'sure?' }] },
    ],
    inferenceConfig: { maxTokens: 9, temperature: 0.5, topP: 1, stopSequences: ['END'] },
  });
});

it('leaves out what the line does not limit', () => {
  expect(inputOf({ messages })).toEqual({
    messages: [{ role: 'user', content: [{ text: 'hi' }] }],
  });
});

it('passes a schema on as text', () => {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const format = { type: 'json_schema', json_schema: { name: 'r', schema, strict: true } };
  expect(inputOf({ messages, response_format: format })).toMatchObject({
    outputConfig: {
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'r', schema: JSON.stringify(schema) } },
      },
    },
  });
});

it.each<[string, object]>([
  ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }],
  ['temperature', { temperature: 1.5 }],
  ['seed', { seed: 7 }],
  ['frequency_penalty', { frequency_penalty: 0.5 }],
  ['response_format', { response_format: { type: 'json_object' } }],
  ['messages', { messages: [{ role: 'system', content: 'alone' }] }],
  [
    'messages[0].content[0].image_url.url',
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'https://acme.test/cat.png' } }],
        },
      ],
    },
  ],
  [
    'messages[1].tool_calls',
    {
      messages: [
        ...messages,
        {
          role: 'assistant',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
      ],
    },
  ],
  ['messages[1]', { messages: [...messages, { role: 'tool', tool_call_id: 'c', content: '1' }] }],
])('refuses a line for its %s', (param, members) => {
  expect(refusalOf(members)).toBe(param);
});

it('clamps and drops what it may, but never tools', () => {
  const dropParams = true;
  expect(inputOf({ messages, temperature: 2, seed: 1 }, { dropParams })).toEqual({
    messages: [{ role: 'user', content: [{ text: 'hi' }] }],
    inferenceConfig: { temperature: 1 },
  });
  const tools = [{ type: 'function', function: { name: 'f' } }];
  expect(encode({ messages, tools }, { dropParams })).toMatchObject({ param: 'tools' });
});

it('merges members of the settings into each request', () => {
  const extraBody = { additionalModelRequestFields: { top_k: 5 }, inferenceConfig: { topP: 0.5 } };
  expect(inputOf({ messages, max_tokens: 4 }, { extraBody })).toMatchObject({
    inferenceConfig: { maxTokens: 4, topP: 0.5 },
    additionalModelRequestFields: { top_k: 5 },
  });
});

it('translates or refuses any JSON object', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (extra, content) => {
      const body = { ...extra, messages: [{ role: 'user', content }] };
      expect(['line', 'refused']).toContain(encode(body).kind);
    }),
  );
});
