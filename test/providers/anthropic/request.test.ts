import fc from 'fast-check';
import { encodeRequest } from '../../../providers/anthropic/request';
import type { EncodedLine, TranslationOptions } from '../../../providers/provider';
import { STRICT } from '../calls';

const VERSION = '2023-06-01';

function encode(body: object, options: Partial<TranslationOptions> = {}, version = VERSION) {
  const translation = { ...STRICT, ...options };
  const line = { wireId: 'n1', model: 'claude', body: Buffer.from(JSON.stringify(body)) };
  return encodeRequest({ ...line, translation }, version);
}

function paramsOf(line: EncodedLine): Record<string, unknown> {
  if (line.kind === 'refused') throw new Error(`${line.param}: ${line.message}`);
  const { custom_id: id, params } = JSON.parse(line.bytes.toString()) as {
    custom_id: string;
    params: Record<string, unknown>;
  };
  expect(id).toBe('n1');
  return params;
}

const messages = [{ role: 'user', content: 'How far is the moon?' }];
const asked = [{ role: 'user', content: [{ type: 'text', text: 'How far is the moon?' }] }];
const ask = (members: object, options?: Partial<TranslationOptions>, version?: string) =>
  encode({ model: 'given', messages, ...members }, options, version);
const dropping = { dropParams: true };

it('translates a question as the published example has it', () => {
  const line = ask({ max_tokens: 1_024, messages });
  expect(paramsOf(line)).toEqual({ model: 'claude', max_tokens: 1_024, messages: asked });
});

it('takes the default for a line without a limit, and prefers the new name of the limit', () => {
  expect(paramsOf(ask({}))).toMatchObject({ max_tokens: 4_096 });
  expect(paramsOf(ask({}, { defaultMaxTokens: 9 }))).toMatchObject({ max_tokens: 9 });
  const both = ask({ max_tokens: 5, max_completion_tokens: 7 });
  expect(paramsOf(both)).toMatchObject({ max_tokens: 7 });
});

it('joins system messages with blank lines, and neighbours of one role', () => {
  const conversation = [
    { role: 'system', content: 'Be brief.' },
    { role: 'developer', content: 'Be kind.' },
    { role: 'user', content: 'Hi' },
    { role: 'user', content: 'Are you there?' },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: 'Good.' },
  ];
  const text = (one: string) => ({ type: 'text', text: one });
  expect(paramsOf(ask({ messages: conversation }))).toMatchObject({
    system: 'Be brief.\n\nBe kind.',
    messages: [
      { role: 'user', content: [text('Hi'), text('Are you there?')] },
      { role: 'assistant', content: [text('Yes.')] },
      { role: 'user', content: [text('Good.')] },
    ],
  });
});

it('refuses a late system message, or moves it to the front', () => {
  const late = { messages: [...messages, { role: 'system', content: 'Be brief.' }] };
  expect(ask(late)).toMatchObject({ kind: 'refused', param: 'messages[1]' });
  expect(paramsOf(ask(late, dropping))).toMatchObject({ system: 'Be brief.', messages: asked });
});

it('translates images in the line and on the web', () => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'auto' } });
  const content = [
    { type: 'text', text: 'What is it?' },
    image('data:image/webp;base64,UklGRg=='),
    image('https://images.test/ant.jpg'),
  ];
  expect(paramsOf(ask({ messages: [{ role: 'user', content }] }))['messages']).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is it?' },
        {
          type: 'image',
          source: { type: 'base64', media_type: 'image/webp', data: 'UklGRg==' },
        },
        { type: 'image', source: { type: 'url', url: 'https://images.test/ant.jpg' } },
      ],
    },
  ]);
});

it.each<[string, object, string]>([
  ['an image of another type', { url: 'data:image/tiff;base64,AA==' }, 'image_url.url'],
  ['a file on a disk', { url: 'file:///etc/hosts' }, 'image_url.url'],
])('refuses %s even if it may drop members', (_, image_url, path) => {
  const part = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url }] }] };
  const expected = { kind: 'refused', param: `messages[0].content[0].${path}` };
  expect(ask(part, dropping)).toMatchObject(expected);
});

it.each<[string, object]>([
  ['audio', { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }],
  ['a file', { type: 'file', file: { file_id: 'file-1' } }],
])('refuses %s of a message even if it may drop members', (_, part) => {
  const line = ask({ messages: [{ role: 'user', content: [part] }] }, dropping);
  expect(line).toMatchObject({
    kind: 'refused',
    param: expect.stringMatching(/^messages\[0\].content\[0\]/),
  });
});

it('translates calls of functions, and joins the results of parallel calls', () => {
  const call = (id: string, city: string) => ({
    id,
    type: 'function',
    function: { name: 'get_weather', arguments: JSON.stringify({ city }) },
  });
  const conversation = [
    ...messages,
    { role: 'assistant', content: '', tool_calls: [call('c1', 'Oslo'), call('c2', 'Rome')] },
    { role: 'tool', tool_call_id: 'c1', content: 'snow' },
    { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'sun' }] },
    { role: 'user', content: 'Thanks.' },
  ];
  const use = (id: string, city: string) => ({
    ...{ type: 'tool_use', id, name: 'get_weather', input: { city } },
  });
  const result = (id: string, content: string) => ({
    ...{ type: 'tool_result', tool_use_id: id, content },
  });
  expect(paramsOf(ask({ messages: conversation }))['messages']).toEqual([
    ...asked,
    // No empty text stands beside the calls: Anthropic refuses it.
    { role: 'assistant', content: [use('c1', 'Oslo'), use('c2', 'Rome')] },
    {
      role: 'user',
      content: [result('c1', 'snow'), result('c2', 'sun'), { type: 'text', text: 'Thanks.' }],
    },
  ]);
});

const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [
  { type: 'function', function: { name: 'get_weather', description: 'By city', parameters } },
  { type: 'function', function: { name: 'now', strict: true } },
];

it('translates functions, also strict ones and those without parameters', () => {
  expect(paramsOf(ask({ tools }))['tools']).toEqual([
    { name: 'get_weather', description: 'By city', input_schema: parameters },
    { name: 'now', input_schema: { type: 'object' }, strict: true },
  ]);
});

it.each<[object, object | undefined]>([
  [{}, undefined],
  [{ tool_choice: 'auto' }, { type: 'auto' }],
  [{ tool_choice: 'required' }, { type: 'any' }],
  [{ tool_choice: 'none', parallel_tool_calls: false }, { type: 'none' }],
  [{ tool_choice: { type: 'function', function: { name: 'now' } } }, { type: 'tool', name: 'now' }],
  [{ parallel_tool_calls: true }, undefined],
  [{ parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
  [
    { parallel_tool_calls: false, tool_choice: 'required' },
    { type: 'any', disable_parallel_tool_use: true },
  ],
])('translates the choice %j', (members, choice) => {
  expect(paramsOf(ask({ tools, ...members }))['tool_choice']).toEqual(choice);
});

it('refuses to demand a call without functions', () => {
  const line = ask({ tool_choice: 'required' }, dropping);
  expect(line).toMatchObject({ kind: 'refused', param: 'tool_choice' });
});

it('translates settings of sampling and stop sequences', () => {
  const line = ask({ temperature: 1, top_p: 0.5, stop: ['END', '\n\nQ:'], seed: 0 });
  expect(paramsOf(line)).toMatchObject({
    ...{ temperature: 1, top_p: 0.5, stop_sequences: ['END', '\n\nQ:'] },
  });
});

it('asks for the schema of the answer', () => {
  const json_schema = { name: 'moon', strict: true, schema: parameters };
  const line = ask({ response_format: { type: 'json_schema', json_schema } });
  expect(paramsOf(line)['output_config']).toEqual({
    format: { type: 'json_schema', schema: parameters },
  });
});

it.each<[object, string, object]>([
  [{ temperature: 1.5 }, 'temperature', { temperature: 1 }],
  [{ top_p: -1 }, 'top_p', { top_p: 0 }],
  [{ seed: 7 }, 'seed', {}],
  [{ presence_penalty: 0.5 }, 'presence_penalty', {}],
  [{ frequency_penalty: -1 }, 'frequency_penalty', {}],
  [{ stop: ['END', ' '] }, 'stop[1]', { stop_sequences: ['END'] }],
  [{ stop: '\n' }, 'stop[0]', {}],
  [{ response_format: { type: 'json_object' } }, 'response_format', {}],
  [{ logit_bias: { 5: 1 } }, 'logit_bias', {}],
  [{ n: 2 }, 'n', {}],
])('refuses %j by the path of the member, or sends what is left of it', (members, param, rest) => {
  expect(ask(members)).toMatchObject({ kind: 'refused', param });
  const sent = { model: 'claude', max_tokens: 4_096, messages: asked, ...rest };
  expect(paramsOf(ask(members, dropping))).toEqual(sent);
});

it.each([{ temperature: 0.5 }, { top_p: 0.5 }])(
  'refuses %j in versions of the API without it',
  (member) => {
    const [param = ''] = Object.keys(member);
    expect(paramsOf(ask(member))).toMatchObject(member);
    expect(ask(member, {}, '2026-10-21')).toMatchObject({ kind: 'refused', param });
    expect(paramsOf(ask(member, dropping, '2026-10-21'))).not.toHaveProperty(param);
  },
);

it('merges extra members into the request', () => {
  const json_schema = { name: 'moon', schema: parameters };
  const extraBody = { output_config: { effort: 'low' }, thinking: { type: 'adaptive' } };
  const line = ask({ response_format: { type: 'json_schema', json_schema } }, { extraBody });
  expect(paramsOf(line)).toMatchObject({
    output_config: { format: { type: 'json_schema' }, effort: 'low' },
    thinking: { type: 'adaptive' },
  });
});

it('keeps the model of the line if the delegate names no other', () => {
  const body = Buffer.from(JSON.stringify({ model: 'claude-given', messages }));
  const line = encodeRequest({ wireId: 'n1', model: null, body, translation: STRICT }, VERSION);
  expect(paramsOf(line)).toMatchObject({ model: 'claude-given' });
});

it('makes a line or a refusal of any body', () => {
  const name = fc.constantFrom(
    ...['role', 'content', 'type', 'text', 'image_url', 'url', 'function', 'name', 'parameters'],
    ...['tool_calls', 'arguments', 'json_schema', 'schema', 'tool_call_id', 'id', 'strict'],
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
    { role: word, content: any, tool_calls: any, tool_call_id: any },
    { requiredKeys: ['role'] },
  );
  const plain = fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.string() });
  const nothing = { arbitrary: fc.constant(null), weight: 5 };
  const member = fc.oneof(nothing, { arbitrary: any, weight: 1 });
  const body = fc.record({
    messages: fc.array(
      fc.oneof({ arbitrary: plain, weight: 5 }, { arbitrary: message, weight: 1 }),
    ),
    ...{ tools: member, tool_choice: member, response_format: member },
    ...{ stop: member, max_tokens: fc.option(fc.nat()) },
  });
  let lines = 0;
  fc.assert(
    fc.property(body, fc.boolean(), (given, dropParams) => {
      const line = encode(given, { dropParams });
      if (line.kind === 'refused') return expect(line.param).toEqual(expect.any(String));
      lines++;
      // One line of the job's input, and one element of `requests`.
      expect(line.bytes.includes('\n')).toBe(false);
      return expect(paramsOf(line)['messages']).not.toHaveLength(0);
    }),
    { numRuns: 500 },
  );
  expect(lines).toBeGreaterThan(10);
});
