import { NO_USAGE } from '../../../../core/batch/counts';
import type { StopCause } from '../../../../core/batch/status';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import type { TerminalRecord } from '../../../../storage/postgres/batches/types';
import { useDatabase } from '../../../support/postgres';
import { insertBatch } from '../../../support/rows';

/** The statements that end a batch, when row and workflow disagree. */

const OUTPUT_FILES_SEC = 3_600;

const database = useDatabase();
let batches: BatchRepository;

beforeAll(() => {
  batches = createBatchRepository(database.pool, { outputFilesSec: OUTPUT_FILES_SEC });
});

function record(batchId: string, cause: StopCause | null): TerminalRecord {
  const file = { bytes: 10, filename: 'o.jsonl', objectKey: `files/t/${batchId}` };
  return {
    ...{ batchId, cause, counts: { total: 3, completed: 2, failed: 1 }, usage: NO_USAGE },
    ...{ model: 'm', errorFile: null, errors: null },
    outputFile: { id: `file-${batchId}`, ...file },
  };
}

async function row(id: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return rows[0] ?? {};
}

async function files(batchId: string): Promise<Record<string, unknown>[]> {
  const text = 'select tenant, expires_at - created_at as life from files where batch_id = $1';
  return (await database.pool.query<Record<string, unknown>>(text, [batchId])).rows;
}

describe('a batch that has ended', () => {
  it.each(['completed', 'failed', 'expired', 'cancelled'] as const)(
    'as %s keeps its status when another cause comes later, and gets no more files',
    async (status) => {
      const id = await insertBatch(database.pool, { status, total: 3 });
      const before = await row(id);
      for (const cause of [null, 'cancelled', 'expired', 'failed'] as const) {
        expect(await batches.recordEnd(record(id, cause))).toBe(status);
        expect(await batches.recordUnfinalized(id, cause)).toMatchObject({ status });
      }
      expect(await row(id)).toEqual(before);
      expect(await files(id)).toEqual([]);
    },
  );
});

describe('a batch that ends without files', () => {
  it('ends under the cause in its row', async () => {
    const id = await insertBatch(database.pool, { status: 'in_progress' });
    await batches.claimCause(id, 'cancelled');
    expect(await batches.recordUnfinalized(id, 'expired')).toMatchObject({ status: 'cancelled' });
    expect(await row(id)).toMatchObject({ stop_cause: 'cancelled', expired_at: null });
  });
});

describe('a result file', () => {
  it.each([
    ['for the configured time', null, OUTPUT_FILES_SEC],
    ['for the time that its batch was created with', 7_200, 7_200],
  ])('lives %s, and belongs to the tenant of its batch', async (_, asked, life) => {
    const id = await insertBatch(database.pool, {
      ...{ tenant: 'ann', status: 'in_progress', output_expires_after: asked },
    });
    await batches.recordEnd(record(id, null));
    expect(await files(id)).toEqual([{ tenant: 'ann', life }]);
  });
});
