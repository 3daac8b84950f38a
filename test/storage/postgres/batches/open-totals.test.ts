import { openTotals } from '../../../../storage/postgres/batches/open-totals';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';

let database: TestDatabase;

beforeAll(async () => {
  database = await withDatabase();
}, POSTGRES_START_MS);
afterAll(() => database?.close());
beforeEach(() => database.pool.query('truncate batches'));

const nowSec = () => Math.floor(Date.now() / 1000);
const insert = (over: Record<string, unknown>) => insertBatch(database.pool, over);

it('sums open batches by status, and no others', async () => {
  const now = nowSec();
  await insert({ status: 'validating', created_at: now - 50, expires_at: now - 20 });
  await insert({ status: 'validating', created_at: now - 10, expires_at: now - 4 });
  const counts = { total: 10, completed: 3, failed: 2 };
  await insert({
    status: 'in_progress',
    created_at: now - 99,
    in_progress_at: now - 30,
    ...counts,
  });
  await insert({ status: 'in_progress', in_progress_at: now, total: 7 });
  await insert({ status: 'completed', total: 9, expires_at: now - 99 });
  const totals = await openTotals(database.pool, 10);
  expect(totals.sort((a, b) => (a.status < b.status ? 1 : -1))).toEqual([
    { status: 'validating', batches: 2, overdue: 1, oldestSec: expect.any(Number), openLines: 0 },
    { status: 'in_progress', batches: 2, overdue: 0, oldestSec: expect.any(Number), openLines: 12 },
  ]);
  const [waiting = 0, running = 0] = totals.map(({ oldestSec }) => oldestSec);
  expect([waiting >= 50 && waiting < 60, running >= 30 && running < 40]).toEqual([true, true]);
});

it('reads the index of open batches, however many have ended', async () => {
  await database.pool.query(
    `insert into batches (id, tenant, endpoint, input_file_id, completion_window, created_at, expires_at, status)
     select 'batch_' || i, 't', '/v1/embeddings', 'file-x', '1h', i, i + 3600, 'completed'
     from generate_series(1, 20000) i`,
  );
  await insert({ status: 'finalizing' });
  await database.pool.query('analyze batches');
  const { rows } = await database.pool.query<Record<string, string>>(
    `explain select count(*) from batches
     where status in ('validating', 'in_progress', 'finalizing', 'cancelling')`,
  );
  expect(rows.map((row) => row['QUERY PLAN']).join()).toContain('batches_open');
  expect(await openTotals(database.pool, 0)).toMatchObject([{ status: 'finalizing', batches: 1 }]);
});
