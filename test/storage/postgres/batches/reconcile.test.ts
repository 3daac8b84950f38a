import { randomBytes } from 'node:crypto';
import { NO_USAGE } from '../../../../core/batch/counts';
import { batchIdFromBytes } from '../../../../core/names/ids';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import type { TerminalRecord } from '../../../../storage/postgres/batches/types';
import { insertBatch, type BatchOverrides } from '../../../support/rows';
import { useDatabase } from '../../../support/postgres';

const database = useDatabase('batches', 'files', 'chunk_progress');
let batches: BatchRepository;

beforeAll(() => {
  batches = createBatchRepository(database.pool, { outputFilesSec: 3600 });
});

const insert = (over: BatchOverrides = {}) => insertBatch(database.pool, over);

async function columns(id: string): Promise<Record<string, unknown>> {
  const { rows: found } = await database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return found[0] ?? {};
}

it('pages through open batches alone, in order of insertion', async () => {
  const open = [];
  for (const status of ['validating', 'in_progress', 'finalizing', 'cancelling'] as const) {
    open.push(await insert({ status }));
    await insert({ status: 'completed' });
  }
  const first = await batches.openPage({ afterSeq: 0, limit: 3 });
  const second = await batches.openPage({ afterSeq: first.at(-1)?.seq ?? 0, limit: 3 });
  expect([...first, ...second].map(({ id }) => id)).toEqual(open);
});

it('returns what decides about an open batch', async () => {
  const id = await insert({
    status: 'cancelling',
    stop_cause: 'cancelled',
    workflow_started_at: new Date(),
    cancelling_at: 77,
    created_at: 50,
    expires_at: 100,
  });
  expect(await batches.findOpen(id)).toMatchObject({
    id,
    tenant: 't',
    endpoint: '/v1/embeddings',
    inputFileId: 'file-x',
    status: 'cancelling',
    stopCause: 'cancelled',
    stopTaken: false,
    startSeen: true,
    createdAtSec: 50,
    expiresAtSec: 100,
    cancellingAtSec: 77,
  });
  expect(await batches.findOpen(await insert({ status: 'failed' }))).toBeNull();
});

describe('late files', () => {
  const record = (batchId: string, over: Partial<TerminalRecord> = {}): TerminalRecord => ({
    batchId,
    cause: 'failed',
    counts: { total: 3, completed: 2, failed: 0 },
    usage: { ...NO_USAGE, inputTokens: 5, totalTokens: 5 },
    model: 'm',
    outputFile: { id: `file-${batchId}o`, bytes: 10, filename: 'o.jsonl', objectKey: 'files/o' },
    errorFile: { id: `file-${batchId}e`, bytes: 20, filename: 'e.jsonl', objectKey: 'files/e' },
    errors: null,
    ...over,
  });

  it.each(['failed', 'cancelled', 'expired'] as const)('leave the status %s', async (status) => {
    const id = await insert({ status, stop_cause: status, [`${status}_at`]: 99 });
    const before = await columns(id);
    expect(await batches.recordLateDelivery(record(id))).toBe(status);
    expect(await columns(id)).toEqual({
      ...before,
      output_file_id: `file-${id}o`,
      error_file_id: `file-${id}e`,
      total: 3,
      completed: 2,
      input_tokens: 5,
      total_tokens: 5,
      model: 'm',
      updated_at: expect.any(Date) as Date,
    });
    const files = await database.pool.query(
      'select bytes, batch_id, tenant, expires_at - created_at as life from files order by bytes',
    );
    expect(files.rows).toEqual([
      { bytes: 10, batch_id: id, tenant: 't', life: 3600 },
      { bytes: 20, batch_id: id, tenant: 't', life: 3600 },
    ]);
  });

  it('never replace existing files', async () => {
    const id = await insert({ status: 'cancelled', output_file_id: 'file-first' });
    const before = await columns(id);
    expect(await batches.recordLateDelivery(record(id))).toBe('cancelled');
    expect(await columns(id)).toEqual(before);
  });

  it('are refused for an open batch and for a missing one', async () => {
    const id = await insert({ status: 'finalizing' });
    await expect(batches.recordLateDelivery(record(id))).rejects.toMatchObject({
      code: 'conflict',
    });
    const missing = batchIdFromBytes(randomBytes(16));
    await expect(batches.recordLateDelivery(record(missing))).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});
