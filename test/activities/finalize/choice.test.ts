import { crc32 } from 'node:zlib';
import { NO_USAGE } from '../../../core/batch/counts';
import { encodeFrame, FRAME_KIND } from '../../../core/journal/frame';
import { BATCH, BatchPlace } from './fixtures';

function frame(offset: number, text: string): Buffer {
  const fields = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
  return encodeFrame(fields, Buffer.from(text), crc32);
}

it('delivers the first of two answers to one line in the same segment', async () => {
  const place = await BatchPlace.create([{ model: 'm' }, { model: 'm' }]);
  const offset = place.planOf('m')[0]!.offset;
  const scope = { batchId: BATCH, safeModel: 'm' };
  const writer = place.journal.openWriter(scope, { from: 0, to: 2 });
  for (const text of ['first', 'second']) {
    const bytes = frame(offset, text);
    const header = { offset, kind: FRAME_KIND.output, status: 200, tries: 1, usage: NO_USAGE };
    writer.append({ ...header, payloadLength: text.length }, bytes);
  }
  await writer.close();
  await place.finalize('cancelled');
  expect(await place.resultLines('output')).toEqual(['first']);
  await place.remove();
});
