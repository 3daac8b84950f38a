import { crc32 } from 'node:zlib';
import { AgreedModel } from '../../../activities/finalize/agreed-model';
import { NO_USAGE } from '../../../core/batch/counts';
import { encodeFrame, FRAME_KIND } from '../../../core/journal/frame';
import { modelTag } from '../../../core/openai/answer-model';

function frame(model: string | null): Buffer {
  const body = JSON.stringify(model === null ? {} : { model });
  const line = `{"id":"x","custom_id":"a","response":{"status_code":200,"body":${body}},"error":null}`;
  const fields = { offset: 0, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  return encodeFrame({ ...fields, modelTag: modelTag(model) }, Buffer.from(line), crc32);
}

describe('the model that all answers agree on', () => {
  it.each<[(string | null)[], string | null]>([
    [[], null],
    [[null, null], null],
    [['m'], 'm'],
    [['m', 'm', 'm'], 'm'],
    [[null, 'm', null], 'm'],
    [['m', 'n'], null],
    [['m', 'n', 'm'], null],
    [['m', 'n', 'n', 'o'], null],
  ])('of %j is %j', (models, expected) => {
    const agreed = new AgreedModel();
    for (const model of models) {
      const bytes = Buffer.concat([Buffer.alloc(5), frame(model), Buffer.alloc(3)]);
      agreed.add(bytes, 5, bytes.length - 3);
    }
    expect(agreed.name).toBe(expected);
  });
});
