import { readResultLine } from '../../../providers/bedrock/result-line';
import type { LineResult } from '../../../providers/provider';

const CONTEXT = { model: 'claude', createdSec: 1_767_225_600 };
const read = (record: object | string): LineResult | null =>
  readResultLine(
    Buffer.from(typeof record === 'string' ? record : JSON.stringify(record)),
    CONTEXT,
  );
const answerOf = (modelOutput: object): Record<string, unknown> => {
  const result = read({ recordId: 'n1', modelInput: {}, modelOutput });
  if (result?.kind !== 'answer') throw new Error(result?.kind);
  return JSON.parse(result.body.toString()) as Record<string, unknown>;
};
const said = (...content: object[]) => ({ output: { message: { role: 'assistant', content } } });

it('translates the text, the thoughts and the tokens of an answer', () => {
  const answer = answerOf({
    ...said(
      { reasoningContent: { reasoningText: { text: 'hm', signature: 's' } } },
      { text: 'yes' },
      { text: ', sure' },
    ),
    stopReason: 'end_turn',
    usage: { inputTokens: 5, outputTokens: 7, cacheReadInputTokens: 3, cacheWriteInputTokens: 2 },
  });
  expect(answer).toMatchObject({
    ...{ id: 'n1', object: 'chat.completion', model: 'claude', created: 1_767_225_600 },
    choices: [
      {
        message: { role: 'assistant', content: 'yes, sure', reasoning_content: 'hm' },
        finish_reason: 'stop',
      },
    ],
    usage: {
      ...{ prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 },
      prompt_tokens_details: { cached_tokens: 3 },
    },
  });
});

it.each([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stop'],
  ['guardrail_intervened', 'content_filter'],
  ['content_filtered', 'content_filter'],
  ['something_new', 'stop'],
])('ends an answer with %s as %s', (stopReason, reason) => {
  expect(answerOf({ ...said({ text: 'x' }), stopReason })).toMatchObject({
    choices: [{ finish_reason: reason }],
  });
});

it('answers a refused record with its status, without the words of Amazon', () => {
  const refused = read({
    recordId: 'n1',
    error: { errorCode: 400, errorMessage: 'account 123456789012 may not' },
  });
  expect(refused).toMatchObject({ kind: 'answer', wireId: 'n1', status: 400 });
  expect(JSON.stringify(refused)).not.toContain('123456789012');
  expect(read({ recordId: 'n1', error: { errorCode: 'ModelError' } })).toMatchObject({
    status: 500,
  });
  expect(read({ recordId: 'n1', error: {} })).toMatchObject({ status: 500 });
});

it('reports a record without an output, and takes other lines for malformed', () => {
  expect(read({ recordId: 'n1', modelInput: {} })).toMatchObject({
    kind: 'failed',
    error: { code: 'empty_response' },
  });
  for (const line of ['{"recordId":', '[]', '{"recordId":1,"error":{}}', 'null']) {
    expect(read(line)).toBeNull();
  }
});
