import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { NO_USAGE } from '../../core/batch/counts';
import type {
  OpenSpan,
  SpanAttributes,
  TracedBatch,
  Tracing,
} from '../../platform/tracing/tracing';
import type { BatchRepository } from '../../storage/postgres/batches/repository';
import type { BatchRow, TerminalRecord } from '../../storage/postgres/batches/types';
import { traceActivities } from '../../workers/trace-activities';
import { createFindTracedBatch } from '../../workers/find-traced-batch';
import { traceEnds, traceRestarts } from '../../workers/trace-batches';
import type { StepActivities } from '../../workers/wiring';
import { until } from '../support/until';

const BATCH: TracedBatch = {
  ...{ id: 'batch_1', tenant: 'acme', inputFileId: 'file-1', endpoint: '/v1/embeddings' },
  ...{ createdAtSec: 1, traceContext: null },
};
const RECORD: TerminalRecord = {
  batchId: 'batch_1',
  cause: 'expired',
  counts: { total: 3, completed: 2, failed: 1 },
  usage: NO_USAGE,
  model: 'm',
  outputFile: { id: 'file-out', bytes: 1, filename: 'o', objectKey: 'k' },
  errorFile: null,
  errors: null,
};

/** A {@link Tracing} that notes its spans. */
function recorder() {
  const spans: { name: string; attributes: SpanAttributes; end: string; error?: unknown }[] = [];
  const begin = (name: string, attributes: SpanAttributes): OpenSpan => {
    const span: (typeof spans)[number] = { name, attributes, end: 'open' };
    spans.push(span);
    return {
      set: (more) => (span.attributes = { ...span.attributes, ...more }),
      fail: (error) => (span.error = error),
      run: (work) => work(),
      headers: () => ({}),
      end: () => (span.end = 'ended'),
      discard: () => (span.end = 'discarded'),
    };
  };
  const tracing = {
    beginStep: (name: string, batch: TracedBatch, attributes: SpanAttributes) =>
      begin(name, { 'batch.id': batch.id, ...attributes }),
    beginTrace: begin,
    recordBatch: (
      { id }: TracedBatch,
      { attributes, error }: { attributes: SpanAttributes; error?: unknown },
    ) =>
      spans.push({ name: 'process-batch', attributes: { id, ...attributes }, end: 'ended', error }),
  } as unknown as Tracing;
  return { spans, tracing };
}

const find = () => Promise.resolve(BATCH);

describe('a traced activity', () => {
  const results: Partial<Record<keyof StepActivities, unknown>> = {
    ingest: { kind: 'planned', lineCount: 5, models: [{}, {}] },
    executeChunk: { next: 4, answered: 3, completed: 2, failed: 1, left: 'box' },
    finalize: { kind: 'done', status: 'completed' },
    sweepPage: { removed: 0, nextSeq: null },
  };

  async function run(name: keyof StepActivities, input: object, result: unknown = results[name]) {
    const { spans, tracing } = recorder();
    const given = {
      [name]: () => (result instanceof Error ? Promise.reject(result) : Promise.resolve(result)),
    };
    const traced = traceActivities(given as unknown as StepActivities, { tracing, find });
    const info = { attempt: 2, currentAttemptScheduledTimestampMs: Date.now() - 100 };
    const env = new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
    const activity = traced[name] as (input: unknown) => Promise<unknown>;
    const outcome = await env.run(activity, { batchId: 'batch_1', ...input }).then(
      (value: unknown) => ({ value }),
      (error: unknown) => ({ error }),
    );
    return { span: spans[0], outcome };
  }

  it('has what ingestion found', async () => {
    const { span, outcome } = await run('ingest', {});
    expect(outcome).toEqual({ value: results.ingest });
    expect(span).toMatchObject({
      ...{ name: 'ingest-and-plan', end: 'ended' },
      attributes: {
        'batch.id': 'batch_1',
        'batch.input.line_count': 5,
        'batch.model.count': 2,
        'temporal.activity.attempt': 2,
      },
    });
    expect(span?.attributes['temporal.schedule_to_start_ms']).toBeGreaterThanOrEqual(100);
    expect(span).not.toHaveProperty('error');
  });

  it('has the range of a chunk and what became of it', async () => {
    const { span } = await run('executeChunk', { model: 'm', from: 1, to: 9 });
    expect(span).toMatchObject({
      name: 'execute-chunk',
      attributes: {
        'gen_ai.request.model': 'm',
        'chunk.from': 1,
        'chunk.to': 9,
        'chunk.next': 4,
        'chunk.answered': 3,
        'chunk.exit_reason': 'box',
      },
    });
  });

  it('has the cause and the end that finalization wrote', async () => {
    const { span } = await run('finalize', { cause: 'expired' });
    expect(span?.attributes).toMatchObject({
      'batch.stop_cause': 'expired',
      'batch.status': 'completed',
    });
  });

  it('that fails has the error, and throws it', async () => {
    const failure = new Error('disk full');
    const { span, outcome } = await run('ingest', {}, failure);
    expect(outcome).toEqual({ error: failure });
    expect(span).toMatchObject({ end: 'ended', error: failure });
  });

  it('that is cancelled did not fail', async () => {
    const { span } = await run('ingest', {}, new CancelledFailure('cancelled'));
    expect(span).toMatchObject({
      end: 'ended',
      attributes: { 'temporal.activity.cancelled': true },
    });
    expect(span).not.toHaveProperty('error');
  });

  it('that only waited, or removed nothing, leaves no span', async () => {
    const waits = ApplicationFailure.create({ message: 'waits', category: 'BENIGN' });
    expect((await run('executeChunk', {}, waits)).span).toMatchObject({ end: 'discarded' });
    expect((await run('sweepPage', { kind: 'files' })).span).toMatchObject({ end: 'discarded' });
    const swept = await run('sweepPage', { kind: 'files' }, { removed: 2, nextSeq: null });
    expect(swept.span).toMatchObject({ end: 'ended', attributes: { 'sweep.removed': 2 } });
  });

  it('is the activity itself without tracing', () => {
    const activities = {} as StepActivities;
    expect(traceActivities(activities, { tracing: null, find })).toBe(activities);
  });
});

describe('a batch', () => {
  it('that ends has its result as the span process-batch', async () => {
    const { spans, tracing } = recorder();
    const batches = { recordEnd: () => Promise.resolve('expired') } as unknown as BatchRepository;
    expect(await traceEnds(batches, { tracing, find }).recordEnd(RECORD)).toBe('expired');
    expect(spans).toEqual([
      {
        ...{ name: 'process-batch', end: 'ended', error: undefined },
        attributes: {
          id: 'batch_1',
          'batch.status': 'expired',
          'batch.stop_cause': 'expired',
          'batch.output_file.id': 'file-out',
          'batch.error_file.id': undefined,
          'batch.request.total': 3,
          'batch.request.completed': 2,
          'batch.request.failed': 1,
        },
      },
    ]);
  });

  it('that fails has the code of its first error, and nothing of its file', async () => {
    const { spans, tracing } = recorder();
    const batches = { recordEnd: () => Promise.resolve('failed') } as unknown as BatchRepository;
    const error = { code: 'invalid_json_line', message: 'secret text', param: null, line: 1 };
    await traceEnds(batches, { tracing, find }).recordEnd({ ...RECORD, errors: [error] });
    expect(spans[0]?.error).toEqual(new Error('invalid_json_line'));
  });

  it('whose end cannot be written is not recorded as ended', async () => {
    const { spans, tracing } = recorder();
    const failure = new Error('away');
    const batches = { recordEnd: () => Promise.reject(failure) } as unknown as BatchRepository;
    await expect(traceEnds(batches, { tracing, find }).recordEnd(RECORD)).rejects.toBe(failure);
    expect(spans).toEqual([]);
  });

  it('that ends without files has the counts of its row', async () => {
    const { spans, tracing } = recorder();
    const counts = { total: 9, completed: 4, failed: 0 };
    const row = { stopCause: 'failed', counts, outputFileId: null, errorFileId: null };
    const batches = {
      recordUnfinalized: () =>
        Promise.resolve({ found: true, status: 'failed', stopCause: 'failed' }),
      find: () => Promise.resolve(row),
    } as unknown as BatchRepository;
    await traceEnds(batches, { tracing, find }).recordUnfinalized('batch_1', 'failed');
    expect(spans[0]).toMatchObject({
      attributes: { 'batch.status': 'failed', 'batch.request.completed': 4 },
      error: new Error('the result files could not be made'),
    });
  });

  it('whose workflow reconcile starts has a span for it, also if that fails', async () => {
    const { spans, tracing } = recorder();
    const failure = new Error('no Temporal');
    let fails = false;
    const workflows = { start: () => (fails ? Promise.reject(failure) : Promise.resolve()) };
    const traced = traceRestarts(workflows as never, { tracing, find });
    await traced.start({ id: 'batch_1' } as never);
    fails = true;
    await expect(traced.start({ id: 'batch_1' } as never)).rejects.toBe(failure);
    expect(spans).toMatchObject([
      { name: 're-enqueue', end: 'ended' },
      { name: 're-enqueue', end: 'ended', error: failure },
    ]);
  });

  it('is read once, and again only after a failure', async () => {
    let reads = 0;
    const row = { ...BATCH, metadata: { large: 'x' } } as unknown as BatchRow;
    const findOnce = createFindTracedBatch({
      find: () => (++reads === 1 ? Promise.reject(new Error('away')) : Promise.resolve(row)),
    });
    expect(await findOnce('batch_1')).toBeNull();
    expect(await findOnce('batch_1')).toEqual(BATCH);
    expect(await findOnce('batch_1')).toEqual(BATCH);
    expect(reads).toBe(2);
  });

  it('is worked on untraced while its row cannot be read, by all attempts with one statement', async () => {
    let reads = 0;
    const answers: ((row: BatchRow) => void)[] = [];
    const findSlowly = createFindTracedBatch(
      {
        find: () => {
          reads++;
          return new Promise((resolve) => answers.push(resolve));
        },
      },
      1,
    );
    const attempts = [findSlowly('batch_1'), findSlowly('batch_1')];
    expect(await Promise.all(attempts)).toEqual([null, null]);
    expect(reads).toBe(1);
    answers[0]?.(BATCH as unknown as BatchRow);
    expect(await until(() => findSlowly('batch_1'), 5_000, 'the row')).toEqual(BATCH);
    expect(reads).toBe(1);
  });
});
