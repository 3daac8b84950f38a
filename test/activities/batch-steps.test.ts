import { createBatchSteps, type BatchStepDeps } from '../../activities/batch-steps';
import { configSchema } from '../../platform/config-schema';

const ROW = {
  ...{ tenant: 't', status: 'validating', stopCause: null, endpoint: '/v1/chat/completions' },
  ...{ inputObjectKey: 'k', inputBytes: 64 * 1024 },
};

function opened(row: object, longestTimeoutMs: number | null) {
  return createBatchSteps({
    store: { head: () => Promise.resolve(null) },
    batches: { find: () => Promise.resolve({ ...ROW, ...row }) },
    progress: {},
    config: configSchema.parse({}),
    historyEvents: null,
    longestTimeoutMs: () => longestTimeoutMs,
  } as unknown as BatchStepDeps).openBatch({ batchId: 'batch_1' });
}

describe('a batch', () => {
  it('is small if its file is, with the longest timeout of all live workers', async () => {
    expect((await opened({}, 5_000)).small).toEqual({ requestTimeoutMs: 5_000 });
  });

  it.each<[string, object, number | null]>([
    ['has a larger file', { inputBytes: 64 * 1024 + 1 }, 5_000],
    ['has no usable file', { inputObjectKey: null, inputBytes: null }, 5_000],
    ['has begun before', { status: 'in_progress' }, 5_000],
    ['is stopped', { stopCause: 'cancelled' }, 5_000],
    ['names recordings', { endpoint: '/v1/audio/transcriptions' }, 5_000],
    ['has no live worker that sends', {}, null],
  ])('is not small if it %s', async (_, row, longestTimeoutMs) => {
    expect((await opened(row, longestTimeoutMs)).small).toBeUndefined();
  });
});

describe('opening a batch', () => {
  it.each([
    ['acme', 2.5],
    ['other', 0.5],
    ['constructor', 0.5],
  ])('gives its chunks the weight of tenant %s: %s', async (tenant, weight) => {
    const steps = createBatchSteps({
      store: { head: () => Promise.resolve(null) },
      batches: { find: () => Promise.resolve({ tenant }) },
      progress: {},
      config: configSchema.parse({ fairness: { default: 0.5, tenants: { acme: 2.5 } } }),
      historyEvents: null,
    } as unknown as BatchStepDeps);
    const opened = await steps.openBatch({ batchId: 'batch_1' });
    expect(opened.tenant).toBe(tenant);
    expect(opened.settings.fairnessWeight).toBe(weight);
  });
});
