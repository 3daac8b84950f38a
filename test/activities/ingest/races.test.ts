import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { IngestDeps } from '../../../activities/ingest/deps';
import { createIngest } from '../../../activities/ingest/ingest';
import type { IngestResult } from '../../../activities/ingest/outcome';
import { inputErrorsKey, modelMapKey, planKey } from '../../../core/names/object-names';
import { parseModelMap } from '../../../core/plan/model-map';
import { PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { configSchema } from '../../../platform/config-schema';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';

/** Concurrent ingestions of one batch, and plans of many models. */

const BATCH = `batch_${'0b'.repeat(16)}`;
const INPUT = 'files/t/file-input';

let store: MemoryStore;

beforeEach(() => (store = createMemoryStore()));

function input(models: readonly string[]): void {
  const lines = models.map((model, i) =>
    JSON.stringify({
      custom_id: `c-${i}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model, messages: [] },
    }),
  );
  store.objects.set(INPUT, Buffer.from(lines.join('\n')));
}

function ingest(changes: Partial<IngestDeps> = {}): Promise<IngestResult> {
  const config = configSchema.parse({});
  const row = { endpoint: '/v1/chat/completions', inputObjectKey: INPUT, inputBytes: null };
  const activity = createIngest({
    ...{ store, batches: { input: async () => row }, isRouted: () => true },
    ...{ limits: config.limits, batch: config.batch },
    ...changes,
  });
  const quiet = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
  return quiet.run(activity, { batchId: BATCH });
}

/** Lets a rival act when this ingestion has read the input and is about to write. */
function beforeWriting(act: () => Promise<unknown>): Partial<IngestDeps> {
  return {
    enqueue: async () => {
      await act();
      return true;
    },
  };
}

it('writes a plan for each of many models, and a map that names them all', async () => {
  const models = Array.from({ length: 50 }, (_, i) => `model-${i}`);
  input([...models, ...models]);
  const result = await ingest();
  if (result.kind !== 'planned') throw new Error('not planned');
  expect(result.models.map(({ model }) => model)).toEqual(models);
  for (const { safeModel } of result.models) {
    expect(store.objects.get(planKey(BATCH, result.nonce, safeModel))).toHaveLength(
      2 * PLAN_ENTRY_BYTES,
    );
  }
});

it('writes the model map only after every plan', async () => {
  input(Array.from({ length: 20 }, (_, i) => `model-${i}`));
  const puts: string[] = [];
  const put = store.putIfAbsent;
  store.putIfAbsent = async (key, body) => {
    const result = await put(key, body);
    puts.push(key);
    return result;
  };
  await ingest();
  expect(puts).toHaveLength(21);
  expect(puts.at(-1)).toBe(modelMapKey(BATCH));
});

it('returns the plan that another attempt has written meanwhile', async () => {
  input(['m', 'n']);
  const rivals: unknown[] = [];
  const late = await ingest(beforeWriting(async () => rivals.push(await ingest())));
  expect(late).toEqual(rivals[0]);
  const map = parseModelMap(store.objects.get(modelMapKey(BATCH))!);
  expect(late).toMatchObject({ kind: 'planned', nonce: map.nonce });
});

it('returns the plan of a concurrent attempt although it would refuse the file itself', async () => {
  input(['m']);
  const rivals: unknown[] = [];
  // This attempt finds that the tenant has too many requests waiting.
  const late = await ingest({
    enqueue: async () => {
      rivals.push(await ingest());
      return false;
    },
  });
  expect(late).toEqual(rivals[0]);
});

it('returns an earlier refusal although it would plan the file itself', async () => {
  input(['m']);
  const refused = await ingest({ enqueue: async () => false });
  expect(refused).toEqual({ kind: 'invalid', errorCount: 1 });
  expect(await ingest()).toEqual(refused);
  expect(store.objects.has(modelMapKey(BATCH))).toBe(false);
  expect(store.objects.has(inputErrorsKey(BATCH))).toBe(true);
});

it('counts the lines of each model that no worker can send', async () => {
  input(['m', 'x', 'x', 'y', 'x']);
  const result = await ingest({ isRouted: (model) => model === 'm' });
  expect(result).toMatchObject({ lineCount: 5, unroutedLines: 4 });
  const map = parseModelMap(store.objects.get(modelMapKey(BATCH))!);
  expect([map.entries, map.unrouted]).toEqual([{ m: 1 }, { x: 3, y: 1 }]);
});

describe('the record of the batch', () => {
  it('is written before the plan counts, so that whatever is sent has one', async () => {
    input(['m']);
    let isPlanned: boolean | null = null;
    const record = async (batchId: string): Promise<void> => {
      expect(batchId).toBe(BATCH);
      isPlanned = store.objects.has(modelMapKey(BATCH));
    };
    expect(await ingest({ record })).toMatchObject({ kind: 'planned' });
    expect(isPlanned).toBe(false);
  });

  it('is needed for a plan: without it nothing is planned', async () => {
    input(['m']);
    const record = () => Promise.reject(new Error('the store is away'));
    await expect(ingest({ record })).rejects.toThrow('the store is away');
    expect(store.objects.has(modelMapKey(BATCH))).toBe(false);
  });

  it('is not written for a file that is refused', async () => {
    store.objects.set(INPUT, Buffer.from('no JSON'));
    const record = jest.fn();
    expect(await ingest({ record })).toMatchObject({ kind: 'invalid' });
    expect(record).not.toHaveBeenCalled();
  });
});
