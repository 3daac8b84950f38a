import { embedAnswer } from '../../../core/openai/answer';
import { answerModel, modelTag } from '../../../core/openai/answer-model';
import { answerLine } from '../../../core/openai/result-line';

/** The output line of an answer. */
function outputLine(answer: string, customId = 'a'): Buffer {
  const embedded = embedAnswer(200, Buffer.from(answer));
  return answerLine({ lineId: 'batch_req_1', customId, status: 200, requestId: null, embedded });
}

describe('the model of an output line', () => {
  it.each<[string, string | null]>([
    ['{"model":"m-1"}', 'm-1'],
    ['{"id":"x","choices":[{"model":"inner"}],"usage":{"model":"no"},"model":"last"}', 'last'],
    ['{"model":"first","model":"second"}', 'second'],
    ['{"m\\u006fdel":"esc\\u0061ped \\"é\\""}', 'escaped "é"'],
    ['{"data":[1.5,-2e3,true,null,{"a":"}]"}], "model" : "behind"}', 'behind'],
    ['{"model":7}', null],
    ['{"model":null}', null],
    ['{"error":{"model":"inner"}}', null],
    ['{}', null],
  ])('%s is %j', (answer, model) => {
    expect(answerModel(outputLine(answer))).toBe(model);
    expect(embedAnswer(200, Buffer.from(answer)).model).toBe(model);
  });

  it('is never read from a custom_id that looks like an answer', () => {
    const line = outputLine('{"model":"real"}', '"response":{"body":{"model":"fake"}}');
    expect(answerModel(line)).toBe('real');
  });

  it('is null if the line has no answer', () => {
    expect(answerModel(Buffer.from('{"id":"x","custom_id":"a","response":null}'))).toBeNull();
    expect(answerModel(Buffer.from(''))).toBeNull();
  });
});

describe('the tag of a model', () => {
  it('is 0 without a model and for an invalid name', () => {
    for (const model of [null, '', 'x'.repeat(257)]) expect(modelTag(model)).toBe(0);
  });

  it('is 1 to 65,535 and differs between similar names', () => {
    const names = Array.from({ length: 50 }, (_, i) => `gpt-4o-mini-2024-07-${i}`);
    const tags = names.map(modelTag);
    expect(new Set(tags).size).toBe(names.length);
    for (const tag of tags) expect(tag).toBeGreaterThanOrEqual(1);
    for (const tag of tags) expect(tag).toBeLessThanOrEqual(0xffff);
    expect(modelTag('日本')).not.toBe(modelTag('日本語'));
  });
});
