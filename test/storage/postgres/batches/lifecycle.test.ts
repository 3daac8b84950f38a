import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { NO_USAGE } from '../../../../core/batch/counts';
import type { StopCause } from '../../../../core/batch/status';
import { STOP_CAUSES } from '../../../../core/batch/status';
import { batchIdFromBytes } from '../../../../core/names/ids';
import {
  createBatchRepository,
  type BatchRepository,
} from '../../../../storage/postgres/batches/repository';
import type { TerminalRecord } from '../../../../storage/postgres/batches/types';
import { showCounts } from '../../../../storage/postgres/progress-sql';
import { faultsOf, startAudit, statesOf } from '../../../support/audit';
import { useDatabase } from '../../../support/postgres';
import { until } from '../../../support/until';

const database = useDatabase();
let batches: BatchRepository;

beforeAll(() => {
  batches = createBatchRepository(database.pool, { outputFilesSec: 3600 });
});

async function newBatch(): Promise<string> {
  const id = batchIdFromBytes(randomBytes(16));
  const nowSec = Math.floor(Date.now() / 1000);
  await database.pool.query(
    `insert into batches (id, tenant, endpoint, input_file_id, completion_window, created_at, expires_at)
     values ($1, 't', '/v1/embeddings', 'file-x', '24h', $2, $3)`,
    [id, nowSec, nowSec + 86_400],
  );
  return id;
}

async function row(id: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return rows[0] ?? {};
}

function terminal(batchId: string, over: Partial<TerminalRecord> = {}): TerminalRecord {
  return {
    batchId,
    cause: null,
    counts: { total: 3, completed: 2, failed: 1 },
    usage: { ...NO_USAGE, inputTokens: 5, totalTokens: 5 },
    model: 'm',
    outputFile: { id: `file-o${batchId}`, bytes: 10, filename: 'o.jsonl', objectKey: 'files/o' },
    errorFile: null,
    errors: null,
    ...over,
  };
}

describe('the row of a batch', () => {
  it('reports a missing row instead of failing', async () => {
    const missing = batchIdFromBytes(randomBytes(16));
    expect(await batches.find(missing)).toBeNull();
    expect(await batches.claimCause(missing, 'expired')).toMatchObject({ found: false });
    expect(await batches.recordPhase(missing, { status: 'in_progress' })).toMatchObject({
      found: false,
    });
  });

  it('goes through all phases to completed and sets each time once', async () => {
    const id = await newBatch();
    await batches.recordPhase(id, { status: 'in_progress', total: 3, model: 'm', models: ['m'] });
    const before = await row(id);
    await batches.recordPhase(id, { status: 'finalizing' });
    expect(await batches.recordEnd(terminal(id))).toBe('completed');
    const after = await row(id);
    expect(after).toMatchObject({
      status: 'completed',
      total: 3,
      completed: 2,
      failed: 1,
      input_tokens: 5,
      output_file_id: `file-o${id}`,
      error_file_id: null,
      in_progress_at: before['in_progress_at'],
      cancelled_at: null,
    });
    expect(
      await batches.recordEnd(terminal(id, { counts: { total: 9, completed: 9, failed: 0 } })),
    ).toBe('completed');
    expect(await row(id)).toEqual(after);
  });

  it('rounds times down to whole seconds', async () => {
    const id = await newBatch();
    await until(
      () => [6, 7, 8].includes(Math.floor(Date.now() / 100) % 10),
      5_000,
      'half a second',
    );
    await batches.recordPhase(id, { status: 'in_progress', total: 3, model: 'm' });
    expect(Number((await row(id))['in_progress_at'])).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('never notes a step before the step that it follows, even if clocks differ', async () => {
    const id = await newBatch();
    const ahead = Math.floor(Date.now() / 1000) + 50;
    const text = `update batches set status = 'in_progress', in_progress_at = $2 where id = $1`;
    await database.pool.query(text, [id, ahead]);
    const claim = await batches.claimCancel(id, 't', ahead - 50);
    expect(claim?.batch.cancellingAtSec).toBe(ahead);
    await batches.recordEnd(terminal(id, { cause: 'cancelled' }));
    expect(await row(id)).toMatchObject({ cancelling_at: ahead, cancelled_at: ahead });
  });

  it('keeps a model whose name PostgreSQL cannot store', async () => {
    const id = await newBatch();
    const model = 'a\u0000b\ud800c';
    await batches.recordPhase(id, { status: 'in_progress', total: 3, model, models: [model] });
    expect(await batches.recordEnd(terminal(id, { model }))).toBe('completed');
    expect(await row(id)).toMatchObject({ model: 'a\ufffdb\ufffdc', models: ['a\ufffdb\ufffdc'] });
  });

  it('records a refused file with its errors and no files', async () => {
    const id = await newBatch();
    const errors = [{ code: 'empty_file', message: 'x', param: null, line: null }];
    const record = terminal(id, {
      errors,
      outputFile: null,
      counts: { total: 0, completed: 0, failed: 0 },
    });
    expect(await batches.recordEnd(record)).toBe('failed');
    expect(await row(id)).toMatchObject({
      status: 'failed',
      errors: { object: 'list', data: errors },
      total: 0,
      in_progress_at: null,
    });
  });

  describe.each(STOP_CAUSES)('claimed first: %s', (first) => {
    it.each(STOP_CAUSES)('stays the cause when %s is claimed later', async (second) => {
      const id = await newBatch();
      expect(await batches.claimCause(id, first)).toMatchObject({ stopCause: first });
      expect(await batches.claimCause(id, second)).toMatchObject({ stopCause: first });
      expect(await batches.recordEnd(terminal(id, { cause: second }))).toBe(first);
      expect(await row(id)).toMatchObject({ status: first, stop_cause: first });
    });
  });

  it('lets exactly one of many concurrent claims win, and shows it to all', async () => {
    const id = await newBatch();
    const claims = Array.from({ length: 30 }, (_, i) =>
      batches.claimCause(id, STOP_CAUSES[i % 3] as StopCause),
    );
    const seen = new Set((await Promise.all(claims)).map((claim) => claim.stopCause));
    expect(seen.size).toBe(1);
  });

  it('ends cancelled when the API claimed the cancel while the files were being made', async () => {
    const id = await newBatch();
    await batches.recordPhase(id, { status: 'in_progress' });
    await batches.recordPhase(id, { status: 'finalizing' });
    await batches.claimCancel(id, 't', Math.floor(Date.now() / 1000));
    expect(await row(id)).toMatchObject({ status: 'cancelling' });
    expect(await batches.recordEnd(terminal(id))).toBe('cancelled');
    expect(await row(id)).toMatchObject({ status: 'cancelled', output_file_id: `file-o${id}` });
  });

  it.each([
    ['with files', (id: string) => batches.recordEnd(terminal(id, { cause: 'cancelled' }))],
    ['without files', (id: string) => batches.recordUnfinalized(id, 'cancelled')],
  ])('ends as cancelled %s if its row was restored without the cancel', async (_what, end) => {
    const id = await newBatch();
    await batches.recordPhase(id, { status: 'in_progress', total: 3 });
    await end(id);
    const { cancelling_at: cancelling, cancelled_at: cancelled, ...after } = await row(id);
    expect(after).toMatchObject({ status: 'cancelled', stop_cause: 'cancelled' });
    expect([cancelling, cancelled]).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('ends without files with the counts of progress, and deletes progress and headers', async () => {
    const id = await newBatch();
    await batches.recordPhase(id, { status: 'in_progress', total: 10 });
    await batches.recordPhase(id, { status: 'finalizing' });
    await database.pool.query(
      `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker, completed, failed)
       values ($1, 'm', 0, 6, 1, 'w', 5, 1), ($1, 'm', 6, 10, 2, 'w', 3, 0)`,
      [id],
    );
    expect(await batches.recordUnfinalized(id, null)).toMatchObject({ status: 'failed' });
    const after = await row(id);
    expect(after).toMatchObject({
      status: 'failed',
      stop_cause: 'failed',
      stop_taken_at: expect.any(Date),
      total: 10,
      completed: 8,
      failed: 1,
      output_file_id: null,
      errors: { data: [{ code: 'system_error' }] },
    });
    const { rows } = await database.pool.query('select 1 from chunk_progress where batch_id = $1', [
      id,
    ]);
    expect(rows).toEqual([]);
    expect(await batches.recordUnfinalized(id, 'expired')).toMatchObject({ status: 'failed' });
    expect(await row(id)).toEqual(after);
  });

  it('cannot be ended if it does not exist', async () => {
    const missing = batchIdFromBytes(randomBytes(16));
    expect(await batches.recordUnfinalized(missing, null)).toMatchObject({ found: false });
    await expect(batches.recordEnd(terminal(missing))).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('under any interleaving of writers', () => {
  /** All operations that write a status or claim a cause. */
  const writer = fc.constantFrom(
    'in_progress',
    'finalizing',
    'cancelled',
    'expired',
    'failed',
    'end',
    'end-invalid',
    'api-cancel',
    'unfinalized',
    'late',
    'counts',
  );
  beforeAll(() => startAudit(database.pool));

  it.each([
    ['one after another', 40],
    ['all at once', 40],
  ])(
    '%s: makes only legal transitions, never leaves an end, keeps one cause, sets times once',
    (how, numRuns) =>
      fc.assert(
        fc.asyncProperty(fc.array(writer, { minLength: 2, maxLength: 10 }), async (writers) => {
          const id = await newBatch();
          if (how === 'all at once') await Promise.all(writers.map((name) => act(id, name)));
          else for (const name of writers) await act(id, name);
          expect(faultsOf(await statesOf(database.pool, id))).toEqual([]);
        }),
        { numRuns },
      ),
  );
});

async function act(id: string, action: string): Promise<void> {
  switch (action) {
    case 'in_progress':
    case 'finalizing':
      await batches.recordPhase(id, { status: action });
      return;
    case 'cancelled':
    case 'expired':
    case 'failed':
      await batches.claimCause(id, action);
      return;
    case 'api-cancel':
      await batches.claimCancel(id, 't', 2_000_000_000);
      return;
    case 'unfinalized':
      await batches.recordUnfinalized(id, null);
      return;
    case 'late':
      await batches
        .recordLateDelivery(terminal(id))
        .catch((error: unknown) => expect(error).toMatchObject({ code: 'conflict' }));
      return;
    case 'counts':
      await showCounts(database.pool, [id]);
      return;
    case 'end-invalid':
      await batches.recordEnd(
        terminal(id, {
          errors: [{ code: 'empty_file', message: 'x', param: null, line: null }],
          outputFile: null,
          counts: { total: 0, completed: 0, failed: 0 },
        }),
      );
      return;
    default:
      await batches.recordEnd(terminal(id));
  }
}
