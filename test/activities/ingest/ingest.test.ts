import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { addAbortSignal, Readable } from 'node:stream';
import type { IngestDeps } from '../../../activities/ingest/deps';
import { createIngest } from '../../../activities/ingest/ingest';
import type { IngestResult } from '../../../activities/ingest/outcome';
import { NightshiftError } from '../../../core/errors';
import type { InputError } from '../../../core/openai/input-errors';
import { inputErrorsKey, modelMapKey, planKey } from '../../../core/names/object-names';
import { parseModelMap } from '../../../core/plan/model-map';
import { decodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import { configSchema } from '../../../platform/config-schema';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';

const BATCH = `batch_${'0a'.repeat(16)}`;
const INPUT = 'files/t/file-input';

interface House {
  readonly store: MemoryStore;
  readonly deps: IngestDeps;
}

/** @param chunkBytes small ones cut every line; a large file of them takes seconds */
function house(input: string | null, changes: Partial<IngestDeps> = {}, chunkBytes = 300): House {
  const config = configSchema.parse({});
  const store = createMemoryStore({ chunkBytes });
  if (input !== null) store.objects.set(INPUT, Buffer.from(input));
  const row = { endpoint: '/v1/chat/completions', inputObjectKey: INPUT, inputBytes: null };
  const deps: IngestDeps = {
    store,
    batches: { input: async () => row },
    isRouted: () => true,
    limits: config.limits,
    batch: config.batch,
    ...changes,
  };
  return { store, deps };
}

/** An environment that does not log failures, because tests check rejections instead. */
function quietEnvironment(): MockActivityEnvironment {
  return new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
}

function ingest(deps: IngestDeps, env = quietEnvironment()): Promise<IngestResult> {
  return env.run(createIngest(deps), { batchId: BATCH });
}

function request(id: string, model: string, system?: string): string {
  const messages = [
    ...(system === undefined ? [] : [{ role: 'system', content: system }]),
    { role: 'user', content: 'ü' },
  ];
  const body = { model, messages };
  return JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/chat/completions', body });
}

/** The `custom_id`s of a plan's entries, in plan order. */
function planned({ store }: House, nonce: string, safe: string): string[] {
  const plan = store.objects.get(planKey(BATCH, nonce, safe)) ?? Buffer.alloc(0);
  const input = store.objects.get(INPUT) ?? Buffer.alloc(0);
  return Array.from({ length: plan.length / PLAN_ENTRY_BYTES }, (_, i) => {
    const { offset, length } = decodePlanEntry(plan, i);
    const text = input.subarray(offset, offset + length).toString();
    return (JSON.parse(text) as { custom_id: string }).custom_id;
  });
}

function errorsOf({ store }: House): InputError[] {
  const object = store.objects.get(inputErrorsKey(BATCH));
  return (JSON.parse(object?.toString() ?? '{"data":[]}') as { data: InputError[] }).data;
}

async function failureOf(result: Promise<unknown>): Promise<ApplicationFailure> {
  const error: unknown = await result.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApplicationFailure);
  return error as ApplicationFailure;
}

const GOOD = [
  request('a', 'org/m', 'later'),
  request('b', 'n'),
  request('c', 'org/m'),
  request('d', 'org/m', 'later'),
].join('\n');

describe('ingestion of a valid file', () => {
  it('writes a plan for each model, grouped by system prompt, and the model map', async () => {
    const here = house(GOOD);
    const result = await ingest(here.deps);
    if (result.kind !== 'planned') throw new Error('not planned');
    expect(result).toEqual({
      kind: 'planned',
      nonce: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      lineCount: 4,
      models: [
        { safeModel: 'org_m', model: 'org/m', entries: 3 },
        { safeModel: 'n', model: 'n', entries: 1 },
      ],
      unroutedLines: 0,
    });
    expect(planned(here, result.nonce, 'org_m')).toEqual(['c', 'a', 'd']);
    expect(planned(here, result.nonce, 'n')).toEqual(['b']);
    expect(parseModelMap(here.store.objects.get(modelMapKey(BATCH))!)).toEqual({
      version: 1,
      nonce: result.nonce,
      line_count: 4,
      model_to_safe: { 'org/m': 'org_m', n: 'n' },
      safe_to_model: { org_m: 'org/m', n: 'n' },
      entries: { org_m: 3, n: 1 },
      unrouted: {},
    });
  });

  it('counts the lines of a model without a gateway and plans none of them', async () => {
    const here = house(GOOD, { isRouted: (model) => model === 'n' });
    const result = await ingest(here.deps);
    const models = [{ safeModel: 'n', model: 'n', entries: 1 }];
    expect(result).toMatchObject({ kind: 'planned', lineCount: 4, models, unroutedLines: 3 });
    const map = parseModelMap(here.store.objects.get(modelMapKey(BATCH))!);
    expect(map.unrouted).toEqual({ 'org/m': 3 });
    const nowhere = house(GOOD, { isRouted: () => false });
    expect(await ingest(nowhere.deps)).toMatchObject({ models: [], unroutedLines: 4 });
  });

  describe('for a workflow that decides later', () => {
    const later = (deps: IngestDeps): Promise<IngestResult> =>
      quietEnvironment().run(createIngest(deps), { batchId: BATCH, decidesLater: true });

    it('plans models without a route too, and marks them as undecided', async () => {
      const here = house(GOOD, { isRouted: (model) => model === 'n' });
      const result = await later(here.deps);
      if (result.kind !== 'planned') throw new Error('not planned');
      expect(result.unroutedLines).toBe(0);
      expect(result.models).toEqual([
        { safeModel: 'org_m', model: 'org/m', entries: 3, undecided: true },
        { safeModel: 'n', model: 'n', entries: 1 },
      ]);
      expect(planned(here, result.nonce, 'org_m')).toEqual(['c', 'a', 'd']);
      const map = parseModelMap(here.store.objects.get(modelMapKey(BATCH))!);
      expect(map).toMatchObject({ entries: { org_m: 3, n: 1 }, unrouted: {} });
      // A later attempt returns the same: a model with a route when the file was read is never given up.
      expect(await later({ ...here.deps, isRouted: () => false })).toEqual(result);
    });

    it('plans at most 20 models without a route', async () => {
      const lines = Array.from({ length: 25 }, (_, i) => request(`c${i}`, `m${i}`));
      const result = await later(house(lines.join('\n'), { isRouted: () => false }).deps);
      if (result.kind !== 'planned') throw new Error('not planned');
      expect(result.models.filter(({ undecided }) => undecided === true)).toHaveLength(20);
      expect(result).toMatchObject({ lineCount: 25, unroutedLines: 5 });
    });
  });

  describe('reads the routes of other workers before it gives up a model:', () => {
    function announced(lines: string, models: string[]) {
      const known = new Set<string>();
      let asked = 0;
      const refreshRoutes = async () => {
        asked++;
        for (const model of models) known.add(model);
      };
      const { deps } = house(lines, { isRouted: (model) => known.has(model), refreshRoutes });
      return { deps, asked: () => asked };
    }

    it.each([true, false])('for a workflow that decides later (%s)', async (decidesLater) => {
      const { deps, asked } = announced(GOOD, ['org/m']);
      const env = quietEnvironment();
      const result = await env.run(createIngest(deps), { batchId: BATCH, decidesLater });
      const found = { safeModel: 'org_m', model: 'org/m', entries: 3 };
      const lost = { safeModel: 'n', model: 'n', entries: 1, undecided: true };
      expect(result).toMatchObject({
        models: decidesLater ? [found, lost] : [found],
        unroutedLines: decidesLater ? 0 : 1,
      });
      expect(asked()).toBe(1);
    });

    it('even if it is one of too many models to be planned', async () => {
      const lines = Array.from({ length: 25 }, (_, i) => request(`c${i}`, `m${i}`));
      const { deps } = announced(lines.join('\n'), ['m24']);
      const env = quietEnvironment();
      const input = { batchId: BATCH, decidesLater: true };
      const result: IngestResult = await env.run(createIngest(deps), input);
      if (result.kind !== 'planned') throw new Error('not planned');
      expect(result.models).toContainEqual({ safeModel: 'm24', model: 'm24', entries: 1 });
      expect(result.unroutedLines).toBe(4);
    });

    it('and fails with a retryable error while it cannot read them', async () => {
      const refreshRoutes = () =>
        Promise.reject(new NightshiftError('postgres_unavailable', 'away'));
      const here = house(GOOD, { isRouted: () => false, refreshRoutes });
      expect(await failureOf(ingest(here.deps))).toMatchObject({
        type: 'postgres_unavailable',
        nonRetryable: false,
      });
      expect(here.store.objects.has(modelMapKey(BATCH))).toBe(false);
    });
  });

  it('returns the result of an earlier attempt without reading the input again', async () => {
    const here = house(GOOD);
    const first = await ingest(here.deps);
    here.store.objects.delete(INPUT);
    expect(await ingest({ ...here.deps, isRouted: () => false })).toEqual(first);
  });

  it('returns the result of the first of two concurrent attempts', async () => {
    const { deps, store } = house(GOOD);
    const both = await Promise.all([ingest(deps), ingest(deps)]);
    expect(both[0]).toEqual(both[1]);
    const plans = [...store.objects.keys()].filter((key) => key.endsWith('.plan'));
    expect(plans).toHaveLength(4);
  });

  it('heartbeats with the bytes read', async () => {
    const beats: unknown[] = [];
    const env = quietEnvironment();
    env.on('heartbeat', (details: unknown) => beats.push(details));
    await ingest(house(GOOD).deps, env);
    expect(beats).toEqual([{ bytes: 0, phase: 'reading', deaths: 0, suspect: false }]);
  });
});

describe('ingestion of an invalid file', () => {
  it('writes the errors and no plan, and returns them again', async () => {
    const here = house(`${GOOD}\n${request('a', 'n')}\n[]`);
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 2 });
    expect(errorsOf(here).map(({ code, param, line }) => [code, param, line])).toEqual([
      ['duplicate_custom_id', 'custom_id', 5],
      ['invalid_request', null, 6],
    ]);
    const keys = [...here.store.objects.keys()].sort();
    expect(keys).toEqual([inputErrorsKey(BATCH), INPUT].sort());
    here.store.objects.delete(INPUT);
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 2 });
  });

  it('stops at 100 errors and says how many more there are', async () => {
    const here = house('[]\n'.repeat(150));
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 101 });
    expect(errorsOf(here)[100]).toMatchObject({ code: 'too_many_errors', line: null });
  });

  it.each<[string, (i: number) => string]>([
    ['no JSON', () => '{bad'],
    ['no object', () => '[]'],
    ['five faults each', () => '{"custom_id":7,"method":1,"url":2,"body":{"stream":true}}'],
    ['urls of 500 characters', (i) => request(`${i}`, 'm').replace('/v1/', `/${'é'.repeat(500)}`)],
    ['one id', () => request('same', 'm')],
  ])('keeps errors.json small when 50,000 lines have %s', async (_what, text) => {
    const lines = Array.from({ length: 50_000 }, (_, i) => text(i));
    const here = house(lines.join('\n'), {}, 65_536);
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 101 });
    const bytes = here.store.objects.get(inputErrorsKey(BATCH))!;
    expect(bytes.length).toBeLessThan(64 * 1024);
    const errors = errorsOf(here);
    expect(errors.slice(0, -1).every(({ line }) => line !== null && line <= 101)).toBe(true);
    expect(errors.at(-1)).toMatchObject({
      code: 'too_many_errors',
      message: expect.stringMatching(/ (49[89]\d\d|2499\d\d) further errors/) as string,
    });
  });

  it('refuses model names whose total length exceeds the limit of the workflow engine', async () => {
    const names = Array.from({ length: 140 }, (_, i) => `${i}`.padStart(250, '😀'));
    const lines = (some: string[]) => some.map((name, i) => request(`c${i}`, name)).join('\n');
    const place = house(lines(names));
    expect(await ingest(place.deps)).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(errorsOf(place)).toMatchObject([
      { code: 'too_many_models', param: 'body.model', line: null },
    ]);
    expect(await ingest(house(lines(names.slice(0, 120))).deps)).toMatchObject({ kind: 'planned' });
  });

  it('reports invalid lines and too many lines together', async () => {
    const { limits } = house(null).deps;
    const file = ['[]', request('a', 'm'), request('b', 'm')].join('\n');
    const here = house(file, { limits: { ...limits, max_requests: 2 } });
    await ingest(here.deps);
    expect(errorsOf(here).map(({ code, line }) => [code, line])).toEqual([
      ['too_many_tasks', null],
      ['invalid_request', 1],
    ]);
  });

  it('does not read a file that is too large', async () => {
    const { limits, ...rest } = house(GOOD).deps;
    const here = house(GOOD, { limits: { ...limits, max_file_bytes: GOOD.length } });
    const scan = () => Readable.from([]).destroy(new Error('it was read'));
    const deps = { ...rest, ...here.deps, store: { ...here.store, scan } };
    expect(await ingest(deps)).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(errorsOf(here)).toMatchObject([{ code: 'file_too_large', param: null, line: null }]);
  });

  it('reports the file id if there was no usable file when the batch was created', async () => {
    const row = { endpoint: '/v1/embeddings', inputObjectKey: null, inputBytes: null };
    const here = house(null, { batches: { input: async () => row } });
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(errorsOf(here)).toMatchObject([
      { code: 'invalid_request', param: 'file_id', line: null },
    ]);
  });

  it.each(['single_model_batches'] as const)('applies the setting %s', async (setting) => {
    const { batch } = house(GOOD).deps;
    const here = house(GOOD, { batch: { ...batch, [setting]: true } });
    expect(await ingest(here.deps)).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(errorsOf(here)).toMatchObject([{ code: 'mismatched_model', line: 2 }]);
  });
});

describe('ingestion fails', () => {
  it('for good if the input object is gone', async () => {
    const gone = await failureOf(ingest(house(null).deps));
    expect(gone).toMatchObject({ type: 'input_missing', nonRetryable: true });
    const { deps } = house(null);
    const head = async (key: string) => (key === INPUT ? { size: 5 } : null);
    const store = { ...deps.store, head };
    const lost = await failureOf(ingest({ ...deps, store }));
    expect(lost).toMatchObject({ type: 'input_missing', nonRetryable: true });
  });

  it('for good if there is no such batch or its model map is unreadable', async () => {
    const { deps, store } = house(GOOD);
    const none = await failureOf(ingest({ ...deps, batches: { input: async () => null } }));
    expect(none).toMatchObject({ type: 'not_found', nonRetryable: true });
    store.objects.set(modelMapKey(BATCH), Buffer.from('{}'));
    const unreadable = await failureOf(ingest(deps));
    expect(unreadable).toMatchObject({ type: 'plan_unreadable', nonRetryable: true });
  });

  it('with a retryable error if the store does not answer, and leaves nothing behind', async () => {
    const { deps, store } = house(GOOD);
    const scan = () =>
      Readable.from(
        (async function* () {
          yield Buffer.from(GOOD.slice(0, 50));
          throw new NightshiftError('object_store_failed', 'reset');
        })(),
      );
    const failure = await failureOf(ingest({ ...deps, store: { ...store, scan } }));
    expect(failure).toMatchObject({ type: 'object_store_failed', nonRetryable: false });
    expect([...store.objects.keys()]).toEqual([INPUT]);
  });

  it.each([
    ['after its first plan', '.plan', 1],
    ['between its last plan and the map', 'model_map.json', 0],
  ])('%s, and the next attempt writes new plans beside the old ones', async (_, name, written) => {
    const { deps, store } = house(GOOD);
    let left = written;
    const putIfAbsent: typeof store.putIfAbsent = async (key, body) => {
      if (key.endsWith(name) && left-- <= 0)
        throw new NightshiftError('object_store_failed', 'died');
      return store.putIfAbsent(key, body);
    };
    await failureOf(ingest({ ...deps, store: { ...store, putIfAbsent } }));
    const half = [...store.objects.keys()].filter((key) => key.endsWith('.plan'));
    expect(half).toHaveLength(name === '.plan' ? 1 : 2);
    expect(store.objects.has(modelMapKey(BATCH))).toBe(false);

    const result = await ingest(deps);
    if (result.kind !== 'planned') throw new Error('not planned');
    expect(half.some((key) => key.includes(result.nonce))).toBe(false);
    const here = { ...house(GOOD), store };
    expect(planned(here, result.nonce, 'org_m')).toEqual(['c', 'a', 'd']);
    expect(planned(here, result.nonce, 'n')).toEqual(['b']);
    expect(parseModelMap(store.objects.get(modelMapKey(BATCH))!).nonce).toBe(result.nonce);
  });

  it('with the cancellation of the activity, even while no byte arrives', async () => {
    const { deps, store } = house(GOOD);
    const env = quietEnvironment();
    const silent = new Readable({ read: () => env.cancel() });
    const scan: typeof store.scan = (_key, options) =>
      addAbortSignal(options?.signal ?? AbortSignal.abort(), silent);
    const result = ingest({ ...deps, store: { ...store, scan } }, env);
    await expect(result).rejects.toBeInstanceOf(CancelledFailure);
    expect(silent.destroyed).toBe(true);
    expect([...store.objects.keys()]).toEqual([INPUT]);
  });
});

it('refuses a batch that exceeds the limit of waiting requests of its tenant', async () => {
  const asked: [string, number][] = [];
  const over = house(`${request('a', 'm')}\n${request('b', 'm')}\n`, {
    enqueue: async (batchId, requests) => asked.push([batchId, requests]) === 0,
  });
  expect(await ingest(over.deps)).toEqual({ kind: 'invalid', errorCount: 1 });
  expect(asked).toEqual([[BATCH, 2]]);
  expect(errorsOf(over)).toMatchObject([{ code: 'token_limit_exceeded', param: null, line: null }]);
});
