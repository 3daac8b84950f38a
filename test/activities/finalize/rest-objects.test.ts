import { FRAME_KIND } from '../../../core/journal/frame';
import { BATCH, BatchPlace, output } from './fixtures';

/** Rest objects: the answers of a stopped batch that are in no seal. */

const MODEL = { model: 'm' };
const SCOPE = { batchId: BATCH, safeModel: 'm' };

let place: BatchPlace;

afterEach(() => place.remove());

it('does not count a retry frame as an answer', async () => {
  place = await BatchPlace.create([MODEL, MODEL]);
  const answers = new Map([
    [0, { kind: FRAME_KIND.retry, text: '\0\0\0\0\0\0\0\0' }],
    [1, output('answered')],
  ]);
  await place.segment('m', { from: 0, to: 2, answers });
  const result = await place.finalize('cancelled');
  expect(result).toMatchObject({ counts: { total: 2, completed: 1, failed: 0 } });
  expect(await place.resultLines('output')).toEqual(['answered']);
  const [line, ...more] = (await place.resultLines('error')) ?? [];
  expect(line).toContain('"code":"batch_cancelled"');
  expect(more).toEqual([]);
});

it('counts an answer even if a later segment has a retry frame for its line', async () => {
  place = await BatchPlace.create([MODEL]);
  await place.segment('m', { from: 0, to: 1, answers: new Map([[0, output('answered')]]) });
  const retry = { kind: FRAME_KIND.retry, text: '\0\0\0\0\0\0\0\0' };
  await place.segment('m', { from: 0, to: 1, answers: new Map([[0, retry]]) });
  await place.finalize('failed');
  expect(await place.resultLines('output')).toEqual(['answered']);
});

it('finds answers in every gap between seals, in segments that are larger than the gap', async () => {
  place = await BatchPlace.create(Array(12).fill(MODEL));
  const answers = (from: number, to: number) =>
    new Map(Array.from({ length: to - from }, (_, i) => [from + i, output(`a${from + i}`)]));
  // Seals leave the gaps [0, 2), [4, 6) and [9, 12).
  for (const [from, to] of [
    [2, 4],
    [6, 9],
  ] as const) {
    await place.segment('m', { from, to, answers: answers(from, to) });
    expect(await place.seal('m', from, to)).toBe(to);
  }
  await place.segment('m', { from: 0, to: 12, answers: answers(1, 5) });
  await place.segment('m', { from: 8, to: 12, answers: answers(8, 12) });
  await place.segment('m', { from: 5, to: 6, answers: answers(5, 6) });
  const result = await place.finalize('expired');
  expect(result).toMatchObject({ counts: { total: 12, completed: 11, failed: 0 } });
  const delivered = (await place.resultLines('output'))?.sort();
  expect(delivered).toEqual(Array.from({ length: 11 }, (_, i) => `a${i + 1}`).sort());
  const rest = (await place.journal.listSeals(BATCH)).filter(({ range }) => range === null);
  expect(rest.map(({ safeModel }) => safeModel)).toEqual([SCOPE.safeModel]);
});

it('does not count a rest object of an earlier finalization without a manifest as coverage', async () => {
  place = await BatchPlace.create([MODEL, MODEL]);
  const frames = await place.segment('m', {
    from: 0,
    to: 2,
    answers: new Map([[0, output('answered')]]),
  });
  await place.journal.writeSeal(SCOPE, 'rest', frames);
  expect(await place.finalize(null)).toEqual({
    kind: 'holes',
    holes: [{ safe: 'm', from: 0, to: 2 }],
  });
  expect(await place.finalize('cancelled')).toMatchObject({ counts: { completed: 1 } });
});
