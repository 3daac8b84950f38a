import { PlanRuns } from '../../../activities/execute/plan-runs';
import { NightshiftError } from '../../../core/errors';
import { runsKey } from '../../../core/names/object-names';
import { encodeRuns } from '../../../core/plan/runs';

/** The runs of a plan, as chunks read them. */

const PART = { batchId: 'b', planNonce: 'n', safeModel: 'm' };
const FIRST = { ...PART, from: 0, to: 4 };
const SECOND = { ...PART, from: 4, to: 8 };

let reads: string[];
let answer: () => Promise<Buffer>;
let runs: PlanRuns;
beforeEach(() => {
  reads = [];
  runs = new PlanRuns({
    read: (key) => {
      reads.push(key);
      return answer();
    },
  });
});

it('are asked for once if the plan has none', async () => {
  answer = () => Promise.reject(new NightshiftError('object_missing', 'there are none'));
  expect([await runs.read(FIRST), await runs.read(SECOND)]).toEqual([null, null]);
  expect(reads).toEqual([runsKey('b', 'n', 'm')]);
  await runs.read({ ...SECOND, safeModel: 'other' });
  await runs.read({ ...SECOND, planNonce: 'later' });
  expect(reads).toHaveLength(3);
});

it('are asked for again after another error, and by each chunk', async () => {
  answer = () => Promise.reject(new NightshiftError('object_store_failed', 'the store is away'));
  expect(await runs.read(FIRST)).toBeNull();
  answer = () => Promise.resolve(Buffer.from([0b1001]));
  expect(await runs.read(FIRST)).not.toBeNull();
  await runs.read(SECOND);
  expect(reads).toHaveLength(3);
});

it('are those of the part of the plan', async () => {
  const marks = Uint8Array.from([1, 0, 2, 0, 1, 0, 0, 2]);
  const stored = encodeRuns(marks);
  runs = new PlanRuns({
    read: (_key, range) => Promise.resolve(stored.subarray(range?.from, range?.to)),
  });
  expect(await runs.read(FIRST)).toEqual(marks.slice(0, 4));
  expect(await runs.read({ ...PART, from: 3, to: 7 })).toEqual(marks.slice(3, 7));
});
