import { NO_USAGE } from '../../../../core/batch/counts';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import type { EndedBatch, TerminalRecord } from '../../../../storage/postgres/batches/types';
import { useDatabase } from '../../../support/postgres';
import { insertBatch, type BatchOverrides } from '../../../support/rows';

const database = useDatabase();
let batches: BatchRepository;
const ends: EndedBatch[] = [];

beforeAll(() => {
  batches = createBatchRepository(database.pool, {
    onEnded: (end) => void ends.push(end),
  });
});
beforeEach(() => ends.splice(0));

/** A batch that was inserted so long ago. */
async function insertedAgo(seconds: number, over: BatchOverrides = {}): Promise<string> {
  return insertBatch(database.pool, {
    ...over,
    inserted_at: new Date(Date.now() - seconds * 1000),
  });
}

function record(batchId: string, over: Partial<TerminalRecord> = {}): TerminalRecord {
  return {
    ...{ batchId, cause: null, counts: { total: 3, completed: 2, failed: 1 }, usage: NO_USAGE },
    ...{ model: 'm', outputFile: null, errorFile: null, errors: null },
    ...over,
  };
}

const step = (id: string, worker: string) => batches.beginStep(id, { step: 'ingestion', worker });

describe('the wait of a batch', () => {
  it('is returned for its first ingestion alone', async () => {
    const id = await insertedAgo(10);
    const waited = await step(id, 'a');
    expect(waited).toBeGreaterThanOrEqual(9.9);
    expect(waited).toBeLessThan(20);
    expect(await step(id, 'b')).toBeNull();
    expect(await batches.beginStep(id, { step: 'finalization', worker: 'b' })).toBeNull();
  });

  it('is returned to one of two workers that begin at the same moment', async () => {
    const id = await insertedAgo(10);
    const waits = await Promise.all([step(id, 'a'), step(id, 'b')]);
    expect(waits.filter((wait) => wait !== null)).toHaveLength(1);
  });

  it('is measured in whole seconds for a row of the previous release', async () => {
    const nowSec = Math.floor(Date.now() / 1000);
    const id = await insertBatch(database.pool, { inserted_at: null, created_at: nowSec - 100 });
    expect(await step(id, 'a')).toBeGreaterThanOrEqual(100);
  });

  it('is unknown for a batch without a row', async () => {
    expect(await step('batch_0', 'a')).toBeNull();
  });
});

it('returns the age of a batch at its first request, also if it is noted late', async () => {
  const id = await insertedAgo(10);
  const age = await batches.noteFirstRequest(id, 4_000);
  expect(age).toBeGreaterThanOrEqual(5.9);
  expect(age).toBeLessThan(16);
  expect(await batches.noteFirstRequest(id, 0)).toBeNull();
});

describe('the end of a batch', () => {
  it('is reported once, with its times', async () => {
    const id = await insertedAgo(20, { status: 'in_progress', in_progress_at: 1 });
    await step(id, 'a');
    expect(await batches.recordEnd(record(id))).toBe('completed');
    expect(await batches.recordEnd(record(id))).toBe('completed');
    expect(await batches.recordUnfinalized(id, 'failed')).toMatchObject({ status: 'completed' });
    const [end] = ends;
    expect(ends).toHaveLength(1);
    expect(end).toMatchObject({ status: 'completed', refused: false, requests: 3 });
    expect(end?.ageSec).toBeGreaterThanOrEqual(19.9);
    expect(end?.processingSec).toBeLessThan(10);
  });

  it.each([
    ['queued', {}],
    ['in_progress', { in_progress_at: 1 }],
    ['finalizing', { in_progress_at: 1, finalizing_at: 2 }],
  ] as const)('names the phase %s in which the cause found it', async (phase, over) => {
    const status = phase === 'queued' ? 'validating' : phase;
    const id = await insertedAgo(1, { status, ...over });
    await batches.claimCancel(id, 't', 5);
    await batches.recordEnd(record(id));
    expect(ends).toMatchObject([{ status: 'cancelled', phase, processingSec: null }]);
  });

  it('says whether the input file was refused', async () => {
    const refused = await insertedAgo(1);
    const errors = [{ code: 'invalid', message: 'm', param: null, line: 1 }];
    await batches.recordEnd(record(refused, { errors }));
    const broken = await insertedAgo(1);
    await batches.recordEnd(record(broken, { cause: 'failed', errors }));
    expect(ends).toMatchObject([
      { status: 'failed', refused: true },
      { status: 'failed', refused: false },
    ]);
  });

  it('is reported if the files could not be made', async () => {
    const id = await insertedAgo(1, { status: 'in_progress', in_progress_at: 1, total: 7 });
    await batches.recordUnfinalized(id, 'expired');
    expect(ends).toMatchObject([{ status: 'expired', phase: 'in_progress', requests: 7 }]);
  });

  it('is not reported if the transaction does not commit', async () => {
    const id = await insertedAgo(1);
    const file = { id: 'file-1', bytes: -1, filename: null as unknown as string, objectKey: 'k' };
    await expect(batches.recordEnd(record(id, { outputFile: file }))).rejects.toThrow();
    expect(ends).toEqual([]);
  });
});
