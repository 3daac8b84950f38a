import { MockActivityEnvironment } from '@temporalio/testing';
import type {
  BatchActivities,
  ExecuteChunkInput,
  FinalizeInput,
  PlannedModel,
  SmallBatchInput,
  SmallBatchResult,
} from '../../../activities/contract';
import { createRunSmallBatch } from '../../../activities/small/run-small-batch';

const MODEL: PlannedModel = {
  ...{ model: 'alpha', safe: 'alpha', entries: 5 },
  ...{ queue: 'nightshift-exec', requestTimeoutMs: 60_000 },
};
const PLAN = { kind: 'planned', nonce: 'n0', lineCount: 5, models: [MODEL], unroutedLines: 0 };
const CHUNK = {
  ...{ next: 5, completed: 5, failed: 0, answered: 5, worker: 'w' },
  ...{ ratePerSec: null, p95Ms: null, left: 'done', stopCause: null },
};
const ROW = { found: true, status: 'in_progress', stopCause: null };
const END = { kind: 'done', status: 'completed', outputFileId: 'file-o', errorFileId: null };

type Steps = { [K in 'ingest' | 'executeChunk' | 'finalize' | 'projectStatus']: unknown };

/** Runs the activity with steps that return `over`, or throw what is an error. */
async function run(
  over: Partial<Steps> = {},
  { isDraining = false, ...input }: Partial<SmallBatchInput> & { isDraining?: boolean } = {},
) {
  const results: Steps = {
    ...{ ingest: PLAN, executeChunk: CHUNK, projectStatus: ROW, finalize: END },
    ...over,
  };
  const calls: [name: string, input: unknown][] = [];
  const step = (name: keyof Steps) => (given: unknown) => {
    calls.push([name, given]);
    const result = results[name];
    return result instanceof Error ? Promise.reject(result) : Promise.resolve(result);
  };
  const steps = Object.fromEntries(
    Object.keys(results).map((name) => [name, step(name as keyof Steps)]),
  );
  const drain = isDraining ? AbortSignal.abort() : new AbortController().signal;
  const logger = { warn: () => undefined };
  const activity = createRunSmallBatch({
    steps: steps as unknown as BatchActivities,
    ...{ logger, drain },
  });
  const env = new MockActivityEnvironment({ startToCloseTimeoutMs: 165_000 });
  const result: SmallBatchResult = await env.run(activity, {
    ...{ batchId: 'batch_1', tenant: 't', endpoint: '/v1/chat/completions', inputKey: 'k' },
    ...{ deadlineMs: Date.now() + 3_600_000, boxMs: 15_000, ...input },
  });
  return { result, calls, names: calls.map(([name]) => name).sort() };
}

describe('a small batch', () => {
  it('is read, answered and ended', async () => {
    const { result, calls } = await run();
    expect(result).toEqual({ plan: PLAN, chunk: CHUNK, ended: END });
    const inputs = Object.fromEntries(calls);
    expect(inputs['executeChunk'] as ExecuteChunkInput).toMatchObject({
      ...{ planNonce: 'n0', model: 'alpha', from: 0, to: 5, openInModel: 5, reroutes: true },
    });
    expect(inputs['finalize'] as FinalizeInput).toEqual({
      ...{ batchId: 'batch_1', nonce: 'n0', cause: null },
    });
    expect(inputs['projectStatus']).toMatchObject({ status: 'in_progress', total: 5 });
  });

  it('whose file is refused ends without a plan', async () => {
    const refused = { kind: 'invalid', errorCount: 1 };
    const { result, calls } = await run({ ingest: refused });
    expect(result).toEqual({ plan: refused, ended: END });
    expect(calls.at(-1)).toEqual(['finalize', { batchId: 'batch_1', nonce: null, cause: null }]);
  });

  it.each<[string, object]>([
    ['has two models', { models: [MODEL, MODEL] }],
    ['has lines outside all plans', { unroutedLines: 1 }],
    ['has more lines than a first chunk', { models: [{ ...MODEL, entries: 65 }] }],
    ['goes to a provider', { models: [{ ...MODEL, delegate: {} }] }],
    ['has a model without a route', { models: [{ ...MODEL, undecided: true }] }],
    ['may take longer than the attempt', { models: [{ ...MODEL, requestTimeoutMs: 60_001 }] }],
  ])('that %s is only read', async (_, over) => {
    const plan = { ...PLAN, ...over };
    const { result, names } = await run({ ingest: plan });
    expect(result).toEqual({ plan });
    expect(names).toEqual(['ingest']);
  });

  it('is only read by a process that shuts down', async () => {
    expect((await run({}, { isDraining: true })).names).toEqual(['ingest']);
  });

  it.each<[string, Partial<Steps>]>([
    ['has lines without an answer', { executeChunk: { ...CHUNK, next: 3, left: 'box' } }],
    ['is stopped', { executeChunk: { ...CHUNK, stopCause: 'cancelled' } }],
    ['has a claim in its row', { projectStatus: { ...ROW, stopCause: 'cancelled' } }],
    ['has a phase that could not be written', { projectStatus: new Error('away') }],
  ])('that %s is not ended', async (_, over) => {
    const { result, names } = await run(over);
    expect(result.ended).toBeUndefined();
    expect(result.chunk).toEqual(over.executeChunk ?? CHUNK);
    expect(names).not.toContain('finalize');
  });

  it('near its deadline is ended by its workflow', async () => {
    const { result } = await run({}, { deadlineMs: Date.now() + 59_000 });
    expect(result).toEqual({ plan: PLAN, chunk: CHUNK });
  });

  it.each<[string, unknown]>([
    ['fails', new Error('the store is away')],
    ['finds ranges without an answer', { kind: 'holes', holes: [] }],
  ])('whose end %s returns its answers', async (_, finalize) => {
    expect((await run({ finalize })).result).toEqual({ plan: PLAN, chunk: CHUNK });
  });

  it('whose chunk fails returns its plan', async () => {
    expect((await run({ executeChunk: new Error('gone') })).result).toEqual({ plan: PLAN });
  });

  it('fails if it cannot be read', async () => {
    await expect(run({ ingest: new Error('gone') })).rejects.toThrow('gone');
  });
});
