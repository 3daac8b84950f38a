import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { FileIndexing } from '../../../api/uploads/file-indexing';
import type { IngestDeps } from '../../../activities/ingest/deps';
import { createIngest } from '../../../activities/ingest/ingest';
import type { IngestResult } from '../../../activities/ingest/outcome';
import { createLineIndex } from '../../../core/openai/line-index';
import { batchPrefix, fileIndexKey, inputErrorsKey } from '../../../core/names/object-names';
import { configSchema } from '../../../platform/config-schema';
import { createMemoryStore, type MemoryStore } from '../../support/memory-store';

const BATCH = `batch_${'0a'.repeat(16)}`;
const INPUT = 'files/t/file-input';
const ENDPOINT = '/v1/chat/completions';
const CONFIG = configSchema.parse({});
const RELEASE = '1.2.3';
const LINES = 2_500;

const FILE = Buffer.from(
  Array.from({ length: LINES }, (_, i) => {
    const content = `Document ${i % 9}. ${'A line of a usual length. '.repeat(70)}${i}`;
    const body = { model: `m-${i % 3}`, messages: [{ role: 'user', content }] };
    const request = { custom_id: `${i}`, method: 'POST', url: ENDPOINT, body };
    return `${JSON.stringify(request)}\n`;
  }).join(''),
);

interface World {
  readonly store: MemoryStore;
  readonly deps: IngestDeps;
  /** How often the input itself was read. */
  readonly scans: () => number;
}

function world(changes: Partial<IngestDeps> = {}): World {
  const memory = createMemoryStore();
  let scans = 0;
  const scan: MemoryStore['scan'] = (key) => {
    scans++;
    return memory.scan(key);
  };
  const store = { ...memory, scan };
  store.objects.set(INPUT, FILE);
  const row = { endpoint: ENDPOINT, inputObjectKey: INPUT, inputBytes: null };
  const deps: IngestDeps = {
    ...{ store, release: RELEASE, isRouted: () => true },
    ...{ batches: { input: async () => row }, limits: CONFIG.limits, batch: CONFIG.batch },
    ...changes,
  };
  return { store, deps, scans: () => scans };
}

/** The index that an upload leaves. */
function index(): Buffer {
  const options = { index: createLineIndex(), settings: CONFIG, release: RELEASE };
  const indexer = new FileIndexing(options).begin(FILE.length)!;
  indexer.update(FILE);
  return indexer.finish()!;
}

const INDEX = index();

async function ingest({ deps }: World): Promise<IngestResult> {
  const run = createIngest(deps);
  const environment = new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') });
  return environment.run(run, { batchId: BATCH, decidesLater: true });
}

/** What ingestion has written, without the name of its folder. */
function written({ store }: World, result: IngestResult): [string, string][] {
  const nonce = result.kind === 'planned' ? result.nonce : '';
  return [...store.objects]
    .filter(([key]) => key.startsWith(batchPrefix(BATCH)))
    .map(([key, bytes]): [string, string] => [
      key.replace(nonce, 'nonce'),
      bytes.toString('latin1').replace(nonce, 'nonce'),
    ])
    .sort();
}

async function planned(here: World): Promise<[string, string][]> {
  return written(here, await ingest(here));
}

describe('ingestion of a file with an index', () => {
  it('plans what the file says without reading it', async () => {
    const scanned = world();
    const indexed = world();
    indexed.store.objects.set(fileIndexKey(INPUT), INDEX);
    const plans = await planned(scanned);
    expect(plans.length).toBeGreaterThan(3);
    expect(await planned(indexed)).toEqual(plans);
    expect([scanned.scans(), indexed.scans()]).toEqual([1, 0]);
  });

  it('plans models that have got a route in the meantime', async () => {
    let isKnown = false;
    const here = world({
      isRouted: (model) => isKnown || model !== 'm-1',
      refreshRoutes: async () => void (isKnown = true),
    });
    here.store.objects.set(fileIndexKey(INPUT), INDEX);
    const result = await ingest(here);
    if (result.kind !== 'planned') throw new Error('not planned');
    expect(result.models.map(({ undecided }) => undecided)).toEqual(Array(3).fill(undefined));
    expect(here.scans()).toBe(0);
  });

  it.each<[string, Partial<IngestDeps>, Buffer]>([
    ['of another release', { release: '1.2.4' }, INDEX],
    ['for another limit', { limits: { ...CONFIG.limits, max_requests: LINES } }, INDEX],
    ['that is damaged', {}, Buffer.concat([INDEX.subarray(0, 900), INDEX.subarray(901)])],
    ['that is empty', {}, Buffer.alloc(0)],
  ])('reads the file beside an index %s', async (_what, changes, bytes) => {
    const here = world(changes);
    here.store.objects.set(fileIndexKey(INPUT), bytes);
    const plans = await planned(here);
    expect(here.scans()).toBe(1);
    expect(plans).toEqual(await planned(world()));
  });

  it('finds the faults of a file that was good under earlier limits', async () => {
    const here = world({ limits: { ...CONFIG.limits, max_requests: LINES - 1 } });
    here.store.objects.set(fileIndexKey(INPUT), INDEX);
    expect(await ingest(here)).toEqual({ kind: 'invalid', errorCount: 1 });
    expect(here.store.objects.get(inputErrorsKey(BATCH))?.toString()).toContain('too_many_tasks');
  });

  it('fails if the file is gone', async () => {
    const here = world();
    here.store.objects.set(fileIndexKey(INPUT), INDEX);
    here.store.objects.delete(INPUT);
    await expect(ingest(here)).rejects.toMatchObject({ type: 'input_missing' });
  });
});
