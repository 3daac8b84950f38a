import fc from 'fast-check';
import { createAnswerIndex } from '../../../core/openai/answer-index';
import { embedAnyAnswer } from '../../../core/openai/any-answer';
import { damagedAnswer, wholeAnswer } from './answers';

const INDEX = createAnswerIndex()!;
const MAX_BYTES = 1024 * 1024;

const COMPLETION = {
  id: 'chatcmpl-1',
  model: 'org/model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello\n"you"' } }],
  usage: {
    prompt_tokens: 57,
    completion_tokens: 190,
    total_tokens: 248,
    prompt_tokens_details: { cached_tokens: 4, audio_tokens: 9 },
    completion_tokens_details: { reasoning_tokens: 3 },
  },
};

/** Compares with the path in JavaScript; returns whether the index has read the answer. */
function isEmbeddedAlike(body: Buffer, status = 200): boolean {
  const found = INDEX.embed(status, body);
  const expected = embedAnyAnswer(status, body);
  if (found === null) return false;
  expect(found.json.toString('latin1')).toBe(expected.json.toString('latin1'));
  expect({ ...found, json: '' }).toEqual({ ...expected, json: '' });
  return true;
}

function isRead(text: string): boolean {
  return isEmbeddedAlike(Buffer.from(text));
}

describe('the index of an answer', () => {
  it.each<[string, unknown]>([
    ['a chat completion', COMPLETION],
    ['an answer in Chinese', { ...COMPLETION, choices: [{ text: '你好，世界😀' }] }],
    ['an answer without usage', { ...COMPLETION, usage: null }],
    ['an answer without a model', { object: 'list' }],
    ['an empty model', { model: '' }],
    ['a model that is no string', { model: 7 }],
    ['an empty object', {}],
    ['usage of responses', { usage: { input_tokens: 7, output_tokens: 2 } }],
    ['details that are null', { usage: { prompt_tokens: 7, prompt_tokens_details: null } }],
    ['counts that are null', { usage: { prompt_tokens: null, total_tokens: 8 } }],
    ['a usage that is a list', { usage: [1] }],
    ['numbers', { data: [{ embedding: [0.5, -1e-7, 12] }], usage: { prompt_tokens: 8 } }],
  ])('reads %s, compact and indented', (_what, answer) => {
    for (const indent of [undefined, 2, '\t']) {
      const body = Buffer.from(JSON.stringify(answer, null, indent));
      expect(isEmbeddedAlike(body)).toBe(true);
      expect(isEmbeddedAlike(body, 404)).toBe(true);
    }
  });

  it.each<[string, string]>([
    ['text that is no JSON', 'Bad gateway'],
    ['nothing', ''],
    ['an array', '[{}]'],
    ['more than one object', '{}{}'],
    ['a BOM', '\ufeff{}'],
    ['a repeated model', '{"model":"a","model":"b"}'],
    ['a repeated usage', '{"usage":{"total_tokens":1},"usage":null}'],
    ['a repeated count', '{"usage":{"total_tokens":1,"total_tokens":null}}'],
    ['two names of a count', '{"usage":{"prompt_tokens":1,"input_tokens":2}}'],
    ['an escape in a name', '{"mod\\u0065l":"a"}'],
    ['an escape in the name of a count', '{"usage":{"total\\u005ftokens":1}}'],
    ['an escape in the model', '{"model":"\\u0061"}'],
    ['a model beyond ASCII', '{"model":"é"}'],
    ['a count of ten digits', '{"usage":{"total_tokens":1234567890}}'],
    ['a negative count', '{"usage":{"total_tokens":-1}}'],
    ['a fraction', '{"usage":{"total_tokens":1.5}}'],
    ['17,000 levels', `{"a":${'['.repeat(17_000)}${']'.repeat(17_000)}}`],
    ['a usage of 64 KiB', `{"usage":{"x":"${'x'.repeat(65_536)}"}}`],
  ])('does not read %s', (_what, text) => {
    expect(isRead(JSON.stringify(COMPLETION))).toBe(true);
    expect(isRead(text)).toBe(false);
    expect(isRead(JSON.stringify(COMPLETION))).toBe(true);
  });

  it('does not read bytes that are not UTF-8', () => {
    const shapes = ['ff', '80', 'c3', 'c0af', 'c1bf', 'e0809f', 'e09fbf', 'eda080', 'edbfbf'];
    const longer = ['f08080af', 'f08fbfbf', 'f4908080', 'f5808080', 'f8888080', 'f0908f', 'e28f'];
    for (const hex of [...shapes, ...longer]) {
      const body = Buffer.concat([
        Buffer.from('{"a":"'),
        Buffer.from(hex, 'hex'),
        Buffer.from('"}'),
      ]);
      expect([hex, isEmbeddedAlike(body)]).toEqual([hex, false]);
    }
  });

  it('escapes every character beyond ASCII as JavaScript does', () => {
    for (let first = 0x80; first <= 0x10ffff; first += 0x1000) {
      const points = Array.from({ length: 0x1000 }, (_, i) => first + i);
      const text = points
        .filter((point) => point <= 0x10ffff && (point < 0xd800 || point > 0xdfff))
        .map((point) => String.fromCodePoint(point))
        .join('');
      expect(isRead(`{"a":"${text}"}`)).toBe(true);
    }
  });

  it('reads answers of up to 1 MiB, whatever their characters become', () => {
    const around = '{"a":""}'.length;
    const longest = 'é'.repeat((MAX_BYTES - around) / 2);
    expect(isRead(`{"a":"${longest}"}`)).toBe(true);
    expect(isRead(`{"a":"${longest}x"}`)).toBe(false);
    expect(isRead(`{"a":"${'x'.repeat(MAX_BYTES - around)}"}`)).toBe(true);
    expect(isRead(JSON.stringify(COMPLETION))).toBe(true);
  });

  it('does not take bytes of an earlier answer for those of a shorter one', () => {
    const whole = JSON.stringify(COMPLETION);
    for (let length = 0; length < whole.length; length++) {
      expect(isRead(whole)).toBe(true);
      expect(isRead(whole.slice(0, length))).toBe(false);
    }
  });

  it('tells the models of answers in turns apart', () => {
    const fresh = createAnswerIndex()!;
    const long = 'm'.repeat(250);
    const names = ['', null, 'a', 'a', null, '', 'b', long, `${long}n`, long, 'a', null, 'a'];
    const bodies = names.map((model) =>
      Buffer.from(JSON.stringify(model === null ? {} : { model })),
    );
    expect(bodies.map((body) => fresh.embed(200, body)?.model)).toEqual(names);
    // Answers that are not read, or that fail, come between those of the same model.
    for (const between of ['{"model":"c","model":"d"}', '{"model":"c"', '{"model":"e"}']) {
      fresh.embed(500, Buffer.from(between));
      expect(fresh.embed(200, Buffer.from('{"model":"a"}'))?.model).toBe('a');
    }
    const invalid = Buffer.from('{"model":"f","x":"\xff"}', 'latin1');
    expect(fresh.embed(200, invalid)).toBeNull();
    expect(fresh.embed(200, Buffer.from('{"model":"f"}'))?.model).toBe('f');
  });

  it('is missing if Node runs without WebAssembly', () => {
    const given = Reflect.get(globalThis, 'WebAssembly') as unknown;
    try {
      Object.assign(globalThis, { WebAssembly: undefined });
      expect(createAnswerIndex()).toBeNull();
    } finally {
      Object.assign(globalThis, { WebAssembly: given });
    }
  });
});

describe('answers of any shape', () => {
  const status = fc.constantFrom(200, 200, 201, 400, 503);

  it('are embedded as the path in JavaScript embeds them, and most are read', () => {
    let [reads, runs] = [0, 0];
    fc.assert(
      fc.property(wholeAnswer, status, (body, code) => {
        runs++;
        if (isEmbeddedAlike(body, code)) reads++;
      }),
      { numRuns: 3_000 },
    );
    expect(reads / runs).toBeGreaterThan(0.3);
  });

  it('are embedded alike if bytes of them are damaged', () => {
    fc.assert(
      fc.property(damagedAnswer, status, (body, code) => void isEmbeddedAlike(body, code)),
      { numRuns: 5_000 },
    );
  });
});
