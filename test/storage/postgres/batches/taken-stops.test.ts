import { OPEN_STATUSES, STOP_CAUSES, TERMINAL_STATUSES } from '../../../../core/batch/status';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';

/** How the API learns that a workflow has received a cancel, and which batches it starts again. */

const database = useDatabase('batches');
let batches: BatchRepository;
beforeAll(() => {
  batches = createBatchRepository(database.pool);
});

async function takenAt(id: string): Promise<Date | null> {
  const text = 'select stop_taken_at as at from batches where id = $1';
  return (await database.pool.query<{ at: Date | null }>(text, [id])).rows[0]?.at ?? null;
}

it('awaits a signal of a claimed cancel until the workflow claims it, and notes the time once', async () => {
  const id = await insertBatch(database.pool, { tenant: 'ann', status: 'in_progress' });
  expect(await batches.awaitsCancelSignal(id)).toBe(false);
  await batches.claimCancel(id, 'ann', 1_500);
  expect(await batches.awaitsCancelSignal(id)).toBe(true);
  expect(await takenAt(id)).toBeNull();
  await batches.claimCause(id, 'cancelled');
  expect(await batches.awaitsCancelSignal(id)).toBe(false);
  const first = await takenAt(id);
  expect(first).not.toBeNull();
  await batches.claimCause(id, 'cancelled');
  expect(await takenAt(id)).toEqual(first);
});

it.each(STOP_CAUSES)('notes that the workflow has received the cause %s', async (cause) => {
  const id = await insertBatch(database.pool, { status: 'in_progress' });
  await batches.claimCause(id, cause);
  expect(await takenAt(id)).not.toBeNull();
  expect(await batches.awaitsCancelSignal(id)).toBe(false);
});

it.each(OPEN_STATUSES)(
  'lists a batch that is %s as unstarted until its start is seen',
  async (status) => {
    const id = await insertBatch(database.pool, { status, created_at: 1_000 });
    expect((await batches.unstarted(1_001, 10)).map((batch) => batch.id)).toEqual([id]);
    await batches.markStarted(id);
    expect(await batches.unstarted(1_001, 10)).toEqual([]);
  },
);

it.each(TERMINAL_STATUSES)('never lists a batch that is %s as unstarted', async (status) => {
  await insertBatch(database.pool, { status, created_at: 1_000 });
  expect(await batches.unstarted(1_001, 10)).toEqual([]);
});
