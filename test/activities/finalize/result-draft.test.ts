import { readdir } from 'node:fs/promises';
import fc from 'fast-check';
import { readModelMap } from '../../../activities/finalize/batch-objects';
import { ResultDraft } from '../../../activities/finalize/result-draft';
import { ResultDrafts } from '../../../activities/finalize/result-drafts';
import { manifestKey } from '../../../core/names/object-names';
import { temporaryFolder } from '../../../storage/objects/filesystem-layout';
import { tenantHash } from '../../../storage/objects/tenant-hash';
import { until } from '../../support/until';
import { type Answer, BATCH, BatchPlace, error, INPUT_KEY, models, output } from './fixtures';

const TENANT = 'someone';
const LINES = 24;

async function placeOf(names = Array.from({ length: LINES }, () => 'alpha')): Promise<BatchPlace> {
  return BatchPlace.create(models(...names));
}

async function begin(place: BatchPlace, options: { leastBytes?: number; check?: () => void } = {}) {
  const { store, journal } = place;
  const plan = { store, batchId: BATCH, map: await readModelMap(store, BATCH) };
  const tenantFolder = tenantHash(TENANT);
  const where = { journal, plan, inputKey: INPUT_KEY, tenantFolder };
  return ResultDraft.begin({ ...where, leastBytes: 0, check: () => undefined, ...options });
}

/** Finalizes with a draft, and then again from the same manifest without one: the files must be the same. */
async function expectSameFiles(place: BatchPlace, draft: ResultDraft | null): Promise<void> {
  place.drafts = { take: () => Promise.resolve(draft) };
  expect(await place.finalize(null)).toMatchObject({ kind: 'done' });
  const files = await filesOf(place);
  for (const kind of ['output', 'error'] as const) await place.store.delete(place.resultKey(kind));
  place.drafts = { take: () => Promise.resolve(null) };
  await place.finalize(null);
  expect(files).toEqual(await filesOf(place));
  const [first, second] = place.records;
  expect(first).toEqual(second);
  expect(await temporaryFiles(place)).toEqual([]);
}

async function filesOf(place: BatchPlace) {
  return [await place.resultLines('output'), await place.resultLines('error')];
}

function temporaryFiles({ path }: BatchPlace): Promise<string[]> {
  return readdir(temporaryFolder(path));
}

/** Ranges of a plan, in the order in which they are sealed, and after which of them a draft goes on. */
const sealing = fc
  .uniqueArray(fc.integer({ min: 1, max: LINES - 1 }), { maxLength: 7 })
  .map((cuts) =>
    [...new Set([0, ...cuts.sort((a, b) => a - b), LINES - 3, LINES])].sort((a, b) => a - b),
  )
  .chain((cuts) => {
    const ranges = cuts.slice(1).map((to, i) => ({ from: cuts[i] ?? 0, to }));
    return fc.record({
      // Chunks are done nearly in the order of the plan.
      ranges: fc
        .integer({ min: Math.max(0, ranges.length - 2), max: ranges.length - 1 })
        .map((late) => {
          return [...ranges.filter((_, at) => at !== late), ...ranges.slice(late, late + 1)];
        }),
      advances: fc.array(
        fc.nat(3).map((n) => n > 0),
        { minLength: ranges.length, maxLength: ranges.length },
      ),
      /** Which positions fail, and how long the answers are. */
      failing: fc.array(fc.nat(5), { minLength: LINES, maxLength: LINES }),
      bytes: fc.constantFrom(10, 500, 3_000, 20_000, 400_000),
      /** A range that another attempt answers again, after the draft. */
      again: fc.option(fc.constantFrom(...ranges), { freq: 2 }),
    });
  });

function answers({ failing, bytes }: { failing: number[]; bytes: number }, text: string) {
  return (range: { from: number; to: number }): Map<number, Answer> => {
    const found = new Map<number, Answer>();
    for (let at = range.from; at < range.to; at++) {
      const kind = failing[at] === 0 ? error : output;
      found.set(at, kind(`${at} ${text}`.padEnd(bytes, '.')));
    }
    return found;
  };
}

it('makes the same files as a merge of all seals at once', async () => {
  let [begun, advanced] = [0, 0];
  await fc.assert(
    fc.asyncProperty(sealing, async ({ ranges, advances, again, ...shape }) => {
      const place = await placeOf();
      const sealed = async (range: { from: number; to: number }, text: string): Promise<void> => {
        await place.segment('alpha', { ...range, answers: answers(shape, text)(range) });
        await place.seal('alpha', range.from, range.to);
      };
      let draft: ResultDraft | null = null;
      for (const [i, range] of ranges.entries()) {
        await sealed(range, 'first');
        if (advances[i] !== true) continue;
        if (draft !== null) advanced++;
        if (draft === null) draft = await begin(place);
        else await draft.advance();
      }
      if (draft !== null) begun++;
      if (again !== null) await sealed(again, 'again');
      await expectSameFiles(place, draft);
      await place.remove();
    }),
    { numRuns: 100 },
  );
  expect(begun).toBeGreaterThan(30);
  expect(advanced).toBeGreaterThan(30);
}, 120_000);

it('is begun when half of the input can be written, and has lines before the first one without an answer', async () => {
  const place = await placeOf();
  await place.answerAll('alpha', 0, LINES / 2);
  expect(await begin(place)).toBeNull();
  // The plan has every second line first, so these are the lines up to the middle.
  await place.answerAll('alpha', LINES / 2, LINES - 2);
  const draft = await begin(place);
  expect(draft).not.toBeNull();
  expect(await place.resultLines('output')).toBeNull();
  expect(await temporaryFiles(place)).toEqual([]);
  await place.answerAll('alpha', LINES - 2, LINES);
  await expectSameFiles(place, draft);
  await place.remove();
});

it.each<[string, (place: BatchPlace) => Promise<unknown>]>([
  ['there is little to merge', async (place) => begin(place, { leastBytes: 1_000_000 })],
  [
    'every line is answered',
    async (place) => {
      await place.answerAll('alpha', LINES - 2, LINES);
      return begin(place);
    },
  ],
])('is not begun if %s', async (_, attempt) => {
  const place = await placeOf();
  await place.answerAll('alpha', 0, LINES - 2);
  expect(await attempt(place)).toBeNull();
  await place.remove();
});

it('is not begun if lines are outside all plans', async () => {
  const lines = [...models(...Array.from({ length: LINES }, () => 'alpha'))];
  const place = await BatchPlace.create([...lines, { model: 'lost', unrouted: true }]);
  await place.answerAll('alpha', 0, LINES - 2);
  expect(await begin(place)).toBeNull();
  await place.remove();
});

describe('is of no use, and leaves nothing behind,', () => {
  it('if the batch ends for another cause', async () => {
    const place = await placeOf();
    await place.answerAll('alpha', 0, LINES - 2);
    const draft = await begin(place);
    place.drafts = { take: () => Promise.resolve(draft) };
    expect(await place.finalize('cancelled')).toMatchObject({ kind: 'done' });
    expect(await place.resultLines('error')).toHaveLength(2);
    expect(await place.resultLines('output')).toHaveLength(LINES - 2);
    expect(await temporaryFiles(place)).toEqual([]);
    await place.remove();
  });

  it('if other seals have taken the place of those that it has read', async () => {
    const place = await placeOf();
    await place.answerAll('alpha', 0, LINES - 2);
    const draft = await begin(place);
    await place.answerAll('alpha', LINES - 2, LINES);
    for (const { key } of await place.journal.listSeals(BATCH)) await place.store.delete(key);
    await place.answerAll('alpha', 0, LINES);
    await expectSameFiles(place, draft);
    await place.remove();
  });

  it('if it is given up while it merges', async () => {
    const place = await placeOf();
    await place.answerAll('alpha', 0, LINES - 2);
    const check = (): void => {
      throw new Error('enough');
    };
    await expect(begin(place, { check })).rejects.toThrow('enough');
    expect(await temporaryFiles(place)).toEqual([]);
    await place.remove();
  });
});

function untilNothingIsLeft(place: BatchPlace): Promise<true> {
  const isEmpty = async () => (await temporaryFiles(place)).length === 0;
  return until(isEmpty, 5_000, 'no temporary file');
}

describe('the drafts of a process', () => {
  const batch = { batchId: BATCH, tenant: TENANT, inputKey: INPUT_KEY };

  async function processOf(place: BatchPlace) {
    await place.answerAll('alpha', 0, LINES - 2);
    const { store, journal } = place;
    return new ResultDrafts({ store, journal, tenantHash, leastBytes: 0 });
  }

  it('are given to finalization once', async () => {
    const place = await placeOf();
    const drafts = await processOf(place);
    drafts.advance(batch);
    drafts.advance(batch);
    expect(await drafts.take('batch_other')).toBeNull();
    const draft = await drafts.take(BATCH);
    expect(draft).toBeInstanceOf(ResultDraft);
    expect(await drafts.take(BATCH)).toBeNull();
    await place.answerAll('alpha', LINES - 2, LINES);
    await expectSameFiles(place, draft);
    await place.remove();
  });

  it('are one at a time', async () => {
    const place = await placeOf();
    const drafts = await processOf(place);
    drafts.advance({ ...batch, batchId: 'batch_other' });
    drafts.advance(batch);
    expect(await drafts.take(BATCH)).toBeNull();
    drafts.drop('batch_other');
    drafts.advance(batch);
    const draft = await drafts.take(BATCH);
    await draft?.abandon(new Error('done'));
    expect(draft).not.toBeNull();
    await place.remove();
  });

  it('leave nothing behind when they are dropped, begun or not', async () => {
    const place = await placeOf();
    const drafts = await processOf(place);
    drafts.advance(batch);
    drafts.drop(BATCH);
    drafts.advance(batch);
    await untilNothingIsLeft(place);
    drafts.drop(BATCH);
    drafts.drop(BATCH);
    await untilNothingIsLeft(place);
    expect(await place.store.head(manifestKey(BATCH))).toBeNull();
    await place.remove();
  });

  it('fail in silence, because finalization finds what is wrong', async () => {
    const place = await placeOf();
    const drafts = await processOf(place);
    for (const { key } of await place.journal.listSeals(BATCH)) {
      const bytes = await place.store.read(key);
      await place.store.delete(key);
      await place.store.putIfAbsent(key, bytes.fill(0, 40, 60));
    }
    drafts.advance(batch);
    drafts.advance(batch);
    expect(await drafts.take(BATCH)).toBeNull();
    expect(await temporaryFiles(place)).toEqual([]);
    await place.remove();
  });
});
