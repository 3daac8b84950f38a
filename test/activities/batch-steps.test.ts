import { createBatchSteps, type BatchStepDeps } from '../../activities/batch-steps';
import { configSchema } from '../../platform/config-schema';

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
