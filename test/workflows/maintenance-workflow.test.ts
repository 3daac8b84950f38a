import { MAINTENANCE_SCENARIOS, playMaintenance } from './maintenance-scenarios';
import { workflowBundle } from './play-scenario';
import type { TestTemporal } from '../support/temporal';
import { startTemporal, TEMPORAL_START_MS } from '../support/temporal';

let temporal: TestTemporal;

beforeAll(async () => {
  temporal = await startTemporal();
  await workflowBundle();
}, TEMPORAL_START_MS);
afterAll(() => temporal?.stop());

function play(name: string) {
  const scenario = MAINTENANCE_SCENARIOS[name];
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  return playMaintenance(temporal, scenario);
}

it('reconcile goes through all pages and sums up its actions', async () => {
  const { result, reconciled } = await play('reconcile');
  expect(result).toMatchObject({ examined: 30, errors: 1, acted: 3 });
  expect(reconciled.map(({ afterSeq }) => afterSeq)).toEqual([0, 10, 20]);
  expect(new Set(reconciled.map(({ cycleStartedAtMs }) => cycleStartedAtMs)).size).toBe(1);
});

it('reconcile continues in a new run after many pages and keeps its sums', async () => {
  const { result, reconciled, histories } = await play('reconcile-continued');
  expect(histories).toHaveLength(2);
  expect(result).toMatchObject({ examined: 600, errors: 1, acted: 60 });
  expect(reconciled.map(({ afterSeq }) => afterSeq)).toEqual(
    Array.from({ length: 60 }, (_, i) => i * 10),
  );
  expect(new Set(reconciled.map(({ dryRun }) => dryRun))).toEqual(new Set([true]));
  expect(new Set(reconciled.map(({ cycleStartedAtMs }) => cycleStartedAtMs)).size).toBe(1);
});

const KINDS = [
  'files',
  'file_rows',
  'scratch',
  'batches',
  'progress',
  'uploads',
  'upload_rows',
  'idempotency_keys',
  'temporary',
];

it('the sweep handles each kind once, bytes before rows', async () => {
  const { result, swept } = await play('sweep');
  expect(swept.map(({ kind }) => kind)).toEqual(KINDS);
  expect(result).toEqual(Object.fromEntries(KINDS.map((kind) => [kind, 2])));
});

it('the sweep continues in a new run at the next page', async () => {
  const { result, swept, histories } = await play('sweep-continued');
  expect(histories).toHaveLength(2);
  expect(swept).toEqual(
    KINDS.flatMap((kind) => Array.from({ length: 9 }, (_, afterSeq) => ({ kind, afterSeq }))),
  );
  expect(result).toEqual(Object.fromEntries(KINDS.map((kind) => [kind, 18])));
});

it('a late delivery returns the files', async () => {
  const { result } = await play('deliver-late');
  expect(result).toMatchObject({ outputFileId: 'file-o', delivered: true });
});
