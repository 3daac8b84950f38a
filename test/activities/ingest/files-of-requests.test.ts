import { MockActivityEnvironment } from '@temporalio/testing';
import type { IngestDeps } from '../../../activities/ingest/deps';
import { createIngest } from '../../../activities/ingest/ingest';
import type { IngestResult } from '../../../activities/ingest/outcome';
import { codeOutsidePlans } from '../../../activities/finalize/outside-plans';
import { inputFilesKey, modelMapKey, planKey } from '../../../core/names/object-names';
import { parseInputFiles } from '../../../core/plan/input-files';
import { parseModelMap } from '../../../core/plan/model-map';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { configSchema } from '../../../platform/config-schema';
import { createMemoryStore } from '../../support/memory-store';

/** How ingestion finds the files that requests name. */

const BATCH = `batch_${'0a'.repeat(16)}`;
const INPUT = 'files/t/file-input';
const ENDPOINT = '/v1/audio/transcriptions';

function line(id: string, model: string, source: object): string {
  const body = { model, prompt: 'p'.repeat(600), ...source };
  return JSON.stringify({ custom_id: id, method: 'POST', url: ENDPOINT, body });
}

async function ingest(lines: readonly string[], over: Partial<IngestDeps> = {}) {
  const config = configSchema.parse({});
  const store = createMemoryStore();
  store.objects.set(INPUT, Buffer.from(lines.join('\n')));
  const asked: string[][] = [];
  const deps: IngestDeps = {
    store,
    batches: {
      input: async () => ({ endpoint: ENDPOINT, inputObjectKey: INPUT, inputBytes: null }),
    },
    isRouted: () => true,
    pinFiles: async (_, ids) => {
      asked.push([...ids]);
      const known = ids.filter((id) => !id.startsWith('gone'));
      return known.map((id) => ({ id, objectKey: `k/${id}`, bytes: 3, filename: `${id}.wav` }));
    },
    ...{ limits: config.limits, batch: config.batch },
    ...over,
  };
  const env = new MockActivityEnvironment();
  const result: IngestResult = await env.run(createIngest(deps), { batchId: BATCH });
  return { result, store, asked };
}

type Ingested = Awaited<ReturnType<typeof ingest>>;

function mapOf({ store }: Ingested) {
  return parseModelMap(store.objects.get(modelMapKey(BATCH)) ?? Buffer.alloc(0));
}

function filesOf(ingested: Ingested) {
  const key = inputFilesKey(BATCH, mapOf(ingested).nonce);
  return parseInputFiles(ingested.store.objects.get(key) ?? Buffer.alloc(0));
}

function planned(ingested: Ingested): string[] {
  const { store } = ingested;
  const plan = store.objects.get(planKey(BATCH, mapOf(ingested).nonce, 'w')) ?? Buffer.alloc(0);
  const input = store.objects.get(INPUT) ?? Buffer.alloc(0);
  return Array.from({ length: plan.length / PLAN_ENTRY_BYTES }, (_, i) => {
    const { offset, length } = decodePlanEntry(plan, i);
    const text = input.subarray(offset, offset + length).toString();
    return (JSON.parse(text) as { custom_id: string }).custom_id;
  });
}

const LINES = [
  line('a', 'w', { file_id: 'file-1' }),
  line('b', 'w', { file_id: 'gone-1' }),
  line('c', 'w', { file_data: 'UklG', filename: 'c.wav' }),
  line('d', 'w', { file_id: 'file-1' }),
  line('e', 'v', { file_id: 'gone-2' }),
];

it('plans the requests whose files there are, in the order of the input', async () => {
  const ingested = await ingest(LINES);
  expect(planned(ingested)).toEqual(['a', 'c', 'd']);
  expect(ingested.result).toMatchObject({
    kind: 'planned',
    lineCount: 5,
    unroutedLines: 2,
    models: [{ model: 'w', entries: 3 }],
  });
  expect(mapOf(ingested).unrouted).toEqual({ w: 1, v: 1 });
});

it('lists the files that were found', async () => {
  const files = filesOf(await ingest(LINES));
  expect([...files]).toEqual([['file-1', { key: 'k/file-1', bytes: 3, filename: 'file-1.wav' }]]);
});

it('says of lines outside all plans whether their file or their model is unknown', async () => {
  const lines = [...LINES, line('f', 'x', { file_id: 'file-1' })];
  const ingested = await ingest(lines, { isRouted: (model) => model !== 'x' });
  const codes = lines.map((text) => codeOutsidePlans(Buffer.from(text), filesOf(ingested)));
  expect([codes[1], codes[4], codes[5]]).toEqual([
    'input_file_not_found',
    'input_file_not_found',
    'model_not_found',
  ]);
  expect(codeOutsidePlans(Buffer.from(LINES[1] ?? ''), null)).toBe('model_not_found');
});

it('looks up each file once, 1,000 in a statement', async () => {
  const lines = Array.from({ length: 2_001 }, (_, i) =>
    line(String(i), 'w', { file_id: `file-${i}` }),
  );
  const { asked } = await ingest([...lines, line('x', 'w', { file_id: 'file-0' })]);
  expect(asked.map((ids) => ids.length)).toEqual([1_000, 1_000, 1]);
});

it('looks up nothing for a file with errors', async () => {
  const { asked, result } = await ingest([...LINES, line('f', 'w', {})]);
  expect([asked, result.kind]).toEqual([[], 'invalid']);
});
