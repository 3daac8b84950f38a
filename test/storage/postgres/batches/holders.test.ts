import type { HeldBatch } from '../../../../storage/postgres/batches/types';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';

const STARTING = { name: '7@here', host: 'here', uptimeSec: 60 };

const database = useDatabase('batches', 'chunk_progress', 'worker_routes');
let batches: BatchRepository;

beforeAll(() => {
  batches = createBatchRepository(database.pool);
});

const insert = (status: string) => insertBatch(database.pool, { status });

/** A chunk of the batch that `worker` touched last. */
async function touch(batch: string, worker: string, ago: string, released = false): Promise<void> {
  await database.pool.query(
    `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker, touched_at, released)
     values ($1, $2, (select count(*) from chunk_progress), 9, 1, $2, now() - $3::interval, $4)`,
    [batch, worker, ago, released],
  );
}

const announce = (worker: string, ago: string) =>
  database.pool.query(
    `insert into worker_routes (worker, routes, seen_at) values ($1, '{}', now() - $2::interval)`,
    [worker, ago],
  );

const held = async (): Promise<HeldBatch[]> => batches.held(STARTING);

it('finds batches whose chunks are in the hands of another worker of this host, once for each', async () => {
  const id = await insert('in_progress');
  for (const chunk of ['1 minute', '0 seconds']) await touch(id, '6@here', chunk);
  await touch(id, '5@here', '1 hour');
  expect(await held()).toEqual([
    { id, status: 'in_progress', holder: '5@here' },
    { id, status: 'in_progress', holder: '6@here' },
  ]);
});

it('finds no batch that merely waits, was released, has ended, or is held on another host', async () => {
  await insert('validating');
  await insert('in_progress');
  await touch(await insert('in_progress'), '6@here', '0 seconds', true);
  await touch(await insert('completed'), '6@here', '1 minute');
  await touch(await insert('in_progress'), '6@there', '1 minute');
  expect(await held()).toEqual([]);
});

it('finds what a predecessor with the same name left, but not its own work', async () => {
  const old = await insert('cancelling');
  await touch(old, '7@here', '61 seconds');
  await touch(await insert('in_progress'), '7@here', '59 seconds');
  expect(await held()).toEqual([{ id: old, status: 'cancelling', holder: '7@here' }]);
});

it('finds a batch whose ingestion or finalization did not end', async () => {
  const [reading, ending] = [await insert('validating'), await insert('finalizing')];
  const planned = await insert('validating');
  await batches.beginStep(reading, { step: 'ingestion', worker: '6@here' });
  await batches.beginStep(planned, { step: 'ingestion', worker: '6@here' });
  await batches.beginStep(ending, { step: 'finalization', worker: '6@here' });
  await batches.recordPhase(planned, { status: 'in_progress' });
  expect((await held()).map(({ id }) => id).sort()).toEqual([reading, ending].sort());
});

it('takes a worker for alive that has announced itself within the last 6.5 s', async () => {
  await announce('5@here', '6 seconds');
  await announce('6@here', '7 seconds');
  await announce('7@here', '0 seconds');
  expect(await batches.live(['5@here', '6@here', '7@here'], '7@here')).toEqual(new Set(['5@here']));
});
