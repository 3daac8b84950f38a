import fc from 'fast-check';
import { lineResultOf, type GoogleOutcome } from '../../../providers/google-models/line-result';

const CONTEXT = { wireId: 'n1', model: 'given', createdSec: 1_767_225_600 };
const result = (outcome: Partial<GoogleOutcome>) =>
  lineResultOf({ response: undefined, error: undefined, ...outcome }, CONTEXT, (text) => text);
function answer(outcome: Partial<GoogleOutcome>) {
  const line = result(outcome);
  if (line.kind !== 'answer') throw new Error(line.kind);
  return { ...line, body: JSON.parse(line.body.toString()) as Record<string, unknown> };
}
const candidate = (parts: object[], finishReason = 'STOP') => ({
  candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }],
});
function choice(response: object): { message: object; finish_reason: string } {
  return (answer({ response }).body['choices'] as never[])[0] as never;
}

it('translates a response as the published example has it', () => {
  const response = {
    ...candidate([{ text: 'Light scatters.' }]),
    usageMetadata: {
      ...{ promptTokenCount: 8, candidatesTokenCount: 4, totalTokenCount: 22 },
      ...{ thoughtsTokenCount: 10, cachedContentTokenCount: 3 },
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 8 }],
    },
    modelVersion: 'gemini-2.5-flash',
    responseId: 'resp-1',
  };
  expect(answer({ response })).toEqual({
    ...{ kind: 'answer', wireId: 'n1', status: 200, requestId: 'resp-1' },
    body: {
      ...{ id: 'resp-1', object: 'chat.completion', created: 1_767_225_600, model: 'given' },
      choices: [
        {
          ...{ index: 0, logprobs: null, finish_reason: 'stop' },
          message: { role: 'assistant', content: 'Light scatters.', refusal: null },
        },
      ],
      usage: {
        ...{ prompt_tokens: 8, completion_tokens: 14, total_tokens: 22 },
        prompt_tokens_details: { cached_tokens: 3 },
        completion_tokens_details: { reasoning_tokens: 10 },
      },
    },
  });
});

it('takes the line id for an answer without an id', () => {
  expect(answer({ response: candidate([{ text: 'a' }]) })).toMatchObject({
    requestId: null,
    body: { id: 'n1' },
  });
});

it('separates thoughts from the text, and joins texts', () => {
  const parts = [{ text: 'hm', thought: true }, { text: 'Hel' }, { text: 'lo' }];
  expect(choice(candidate(parts)).message).toEqual({
    ...{ role: 'assistant', content: 'Hello', refusal: null, reasoning_content: 'hm' },
  });
});

it('makes ids of tool calls from the line id', () => {
  const call = (city: string) => ({ functionCall: { name: 'f', args: { city } } });
  expect(choice(candidate([call('a'), call('b')]))).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: null,
      tool_calls: [
        { id: 'call_n1_0', type: 'function', function: { name: 'f', arguments: '{"city":"a"}' } },
        { id: 'call_n1_1', type: 'function', function: { name: 'f', arguments: '{"city":"b"}' } },
      ],
    },
  });
  expect(choice(candidate([{ text: 'x' }, call('a')]))).toMatchObject({
    finish_reason: 'tool_calls',
    message: { content: 'x' },
  });
});

it.each([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['OTHER', 'stop'],
  ['A_NEW_REASON', 'stop'],
])('translates the finish reason %s', (word, reason) => {
  expect(choice(candidate([{ text: 'a' }], word)).finish_reason).toBe(reason);
});

it('answers a blocked prompt with an empty text', () => {
  const response = {
    promptFeedback: { blockReason: 'SAFETY' },
    usageMetadata: { promptTokenCount: 5 },
  };
  expect(answer({ response })).toMatchObject({
    status: 200,
    body: {
      choices: [{ finish_reason: 'content_filter', message: { content: '', refusal: null } }],
      usage: { prompt_tokens: 5, completion_tokens: 0 },
    },
  });
});

it.each<[object, number, string | null]>([
  [{ code: 3, message: 'bad' }, 400, 'INVALID_ARGUMENT'],
  [{ code: 5 }, 404, 'NOT_FOUND'],
  [{ code: 7 }, 403, null],
  [{ code: 8 }, 429, null],
  [{ code: 14 }, 503, 'UNAVAILABLE'],
  [{ code: 13 }, 500, 'INTERNAL'],
  [{ code: 77 }, 500, null],
  [{ code: 400, message: 'bad', status: 'INVALID_ARGUMENT' }, 400, 'INVALID_ARGUMENT'],
  [{ code: 503, status: 'UNAVAILABLE' }, 503, 'UNAVAILABLE'],
  [{ status: 'NOT_FOUND' }, 404, 'NOT_FOUND'],
  [{ code: 3, details: [{}, { reason: 'TOO_LONG' }] }, 400, 'TOO_LONG'],
])('answers the error %j with status %i', (error, status, code) => {
  const { body, ...rest } = answer({ error });
  expect(rest).toMatchObject({ status });
  expect(body).toMatchObject({ error: { code, param: null } });
  // What is said of the request is shown.
  expect(JSON.stringify(body).includes('bad')).toBe('message' in error);
});

it('says that a cancelled line did not run, and that an empty response failed', () => {
  expect(result({ error: { code: 1 } })).toEqual({
    ...{ kind: 'unanswered', wireId: 'n1', reason: 'cancelled' },
  });
  expect(result({ response: {} })).toMatchObject({ kind: 'failed', wireId: 'n1' });
  expect(result({})).toMatchObject({ kind: 'failed', wireId: 'n1' });
});

it('makes a result of anything', () => {
  const name = fc.constantFrom(
    ...['candidates', 'content', 'parts', 'text', 'functionCall', 'args', 'promptFeedback'],
    ...['blockReason', 'usageMetadata', 'promptTokenCount', 'code', 'status', 'details', 'reason'],
  );
  const { any } = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 6 },
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(name, tie('any'), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(any, any, (response, error) => {
      const line = result({ response, error });
      expect(line.wireId).toBe('n1');
      if (line.kind === 'answer') {
        expect(line.status).toBeGreaterThanOrEqual(200);
        expect(line.status).toBeLessThan(600);
        expect(() => JSON.parse(line.body.toString()) as unknown).not.toThrow();
      }
    }),
    { numRuns: 500 },
  );
});
