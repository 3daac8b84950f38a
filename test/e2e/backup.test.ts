import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { ageBatches } from '../support/aged-rows';
import { copyDatabase } from '../support/database-copy';
import { describeWithGoTool } from '../support/go-tool';
import { answersIn } from '../support/journal-files';
import { openInstallation, type Installation, type RunningApi } from '../support/installation';
import { withDatabase, type TestDatabase } from '../support/postgres';
import {
  startRecordingBackend,
  type RecordingBackend,
  type Seen,
} from '../support/recording-backend';
import { openTestBucket, S3_START_MS } from '../support/s3';
import { chatLines, resultLines, submit, untilTerminal, upload } from '../support/stack';
import { startTemporal, TEMPORAL_START_MS } from '../support/temporal';
import { until } from '../support/until';

/**
 * The procedure of docs/backup.md#restore: a database from before, the object store of now, and an empty
 * Temporal. One batch for each thing that may have happened since the backup.
 */
const LINES = 40;
/** Answers of a held batch at the backup, and when all processes die. */
const AT_BACKUP = 15;
const AT_DEATH = 25;
const TEST_MS = 180_000;

/** An object store, and where the bytes of a key are on this host. */
interface StoreUnderTest {
  readonly settings: Record<string, unknown>;
  fileOf(key: string): string;
}

type Batch = OpenAI.Batches.Batch;

const folder = mkdtempSync(join(tmpdir(), 'nightshift-backup-'));
let backend: RecordingBackend;
/** How many requests of a model's batch are answered; without an entry all. */
const limits = new Map<string, number>();

beforeAll(async () => {
  ensureBuilt();
  backend = await startRecordingBackend(20);
  backend.hold = (request) =>
    [...limits].some(([model, limit]) => sent(model).indexOf(request) >= limit);
}, 120_000);
afterAll(async () => {
  await backend?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Requests of the batch with this model. */
const sent = (model: string) => backend.seen.filter(({ body }) => body.includes(`"${model}"`));

/** Creates a batch of the model. */
function begin({ client }: RunningApi, model: string): Promise<Batch> {
  return submit(
    client,
    chatLines(LINES, () => model),
  );
}

/** Waits until so many answers of a held batch are in its journal. */
function untilJournalled(store: StoreUnderTest, { id }: Batch, answers: number): Promise<unknown> {
  const journal = store.fileOf(`batches/${id}/journal`);
  return until(() => answersIn(journal) === answers, 60_000, `${answers} answers of ${id}`, 50);
}

interface Output {
  readonly id: string;
  readonly text: string;
}

async function outputOf({ client }: RunningApi, { id }: Batch): Promise<Output> {
  const batch = await untilTerminal(client, id);
  expect(batch).toMatchObject({
    status: 'completed',
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  const outputId = batch.output_file_id ?? '';
  return { id: outputId, text: await (await client.files.content(outputId)).text() };
}

async function expectEachLineOnce(api: RunningApi, batch: Batch): Promise<void> {
  const { output_file_id: file } = await untilTerminal(api.client, batch.id);
  const ids = (await resultLines(api.client, file)).map(({ custom_id }) => custom_id);
  expect(ids).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`));
}

/** Uploads a file before the backup; the result deletes it, with its bytes, as a sweep would. */
async function uploadDoomed(api: RunningApi, database: TestDatabase, store: StoreUnderTest) {
  const file = await upload(api.client, chatLines(1));
  const remove = async (): Promise<void> => {
    await api.client.files.delete(file.id);
    const text = 'select object_key as key from files where id = $1';
    const { rows } = await database.pool.query<{ key: string }>(text, [file.id]);
    rmSync(store.fileOf(rows[0]?.key ?? ''));
  };
  return { id: file.id, remove };
}

/** What clients saw of the batches before all processes died. */
interface Past {
  readonly batches: Readonly<
    Record<'done' | 'open' | 'ends' | 'stopped' | 'later' | 'late', Batch>
  >;
  readonly outputs: Readonly<Record<'done' | 'ends' | 'late', Output>>;
  readonly stopped: Batch;
  readonly deletedFile: string;
  readonly requests: readonly Seen[];
}

/** Works until a backup, goes on after it, and ends with a kill of everything. */
async function live(
  installation: Installation,
  store: StoreUnderTest,
  { lost, backup }: { readonly lost: TestDatabase; readonly backup: TestDatabase },
): Promise<Past> {
  const worker = await installation.startWorker();
  const api = await installation.startApi();
  const done = await begin(api, 'done');
  const doneOutput = await outputOf(api, done);
  for (const model of ['open', 'ends', 'stopped', 'later']) limits.set(model, AT_BACKUP);
  const [open, ends] = [await begin(api, 'open'), await begin(api, 'ends')];
  const stopped = await begin(api, 'stopped');
  for (const batch of [open, ends, stopped]) await untilJournalled(store, batch, AT_BACKUP);
  const doomed = await uploadDoomed(api, lost, store);

  await copyDatabase(lost.pool, backup.pool);

  limits.set('open', AT_DEATH);
  limits.delete('ends');
  await api.client.batches.cancel(stopped.id);
  const [later, late] = [await begin(api, 'later'), await begin(api, 'late')];
  const outputs = {
    done: doneOutput,
    ends: await outputOf(api, ends),
    late: await outputOf(api, late),
  };
  await doomed.remove();
  const cancelled = await untilTerminal(api.client, stopped.id);
  await untilJournalled(store, open, AT_DEATH);
  await untilJournalled(store, later, AT_BACKUP);
  await Promise.all([worker.kill(), api.kill()]);
  const requests = backend.seen.filter((request) => request.answered);
  const batches = { done, open, ends, stopped, later, late };
  return { batches, outputs, stopped: cancelled, deletedFile: doomed.id, requests };
}

/** The procedure, on a new namespace. */
async function restore(installation: Installation, { batches }: Past, backup: TestDatabase) {
  installation.settings['postgres'] = { url: backup.url };
  installation.settings['temporal'] = await freshNamespace();
  limits.clear();
  expect(await installation.run(['migrate'])).toMatchObject({ exitCode: 0 });
  const dry = await installation.run(['restore', '--dry-run']);
  expect(dry).toMatchObject({ exitCode: 0 });
  for (const { id } of [batches.later, batches.late]) expect(dry.stdout).toContain(id);
  expect(dry.stdout).not.toContain(batches.open.id);
  const { stderr } = await installation.run(['restore']);
  expect(stderr).toContain('2 batches restored, 1 files noted as deleted');
  await ageBatches(backup.pool);
  await installation.startWorker();
  return installation.startApi();
}

async function freshNamespace(): Promise<{ address: string; namespace: string }> {
  const { address, namespace } = await startTemporal();
  return { address, namespace };
}

function itRestores(openStore: () => Promise<StoreUnderTest>, startMs: number): void {
  let installation: Installation;
  const databases: TestDatabase[] = [];
  afterAll(async () => {
    await installation?.close();
    for (const database of databases) await database.close();
    limits.clear();
    backend.seen.length = 0;
  }, 60_000);

  it(
    'continues every batch from its journal, and sends nothing again that was answered',
    async () => {
      const [lost, backup] = [await withDatabase(), await withDatabase()];
      databases.push(lost, backup);
      const store = await openStore();
      installation = openInstallation({
        temporal: await freshNamespace(),
        postgres: { url: lost.url },
        object_store: store.settings,
        global_inference_gateway: { url: backend.url, request_timeout: '60s' },
        batch: { cancel_grace: '1s' },
        concurrency: { per_model: 5 },
        worker: { heartbeat_timeout: '3s' },
      });
      const past = await live(installation, store, { lost, backup });
      const api = await restore(installation, past, backup);

      const { batches, outputs } = past;
      for (const name of ['done', 'ends', 'late'] as const) {
        expect(await outputOf(api, batches[name])).toEqual(outputs[name]);
      }
      for (const name of ['open', 'later'] as const) await expectEachLineOnce(api, batches[name]);
      const stopped = await untilTerminal(api.client, batches.stopped.id);
      const { status, request_counts, output_file_id, error_file_id } = past.stopped;
      expect(status).toBe('cancelled');
      expect(stopped).toMatchObject({ status, request_counts, output_file_id, error_file_id });
      for (const { requestId } of past.requests) {
        expect(backend.seen.filter((request) => request.requestId === requestId)).toHaveLength(1);
      }
      const deleted = api.client.files.retrieve(past.deletedFile);
      await expect(deleted).rejects.toMatchObject({ status: 404 });
    },
    startMs + TEST_MS,
  );
}

describe('a database from before, a filesystem of now and an empty Temporal', () => {
  const path = join(folder, 'store');
  itRestores(async () => {
    const fileOf = (key: string) => join(path, 'objects', key);
    return { settings: { type: 'filesystem', path }, fileOf };
  }, TEMPORAL_START_MS);
});

describeWithGoTool(
  'versitygw',
  'a database from before, a bucket of now and an empty Temporal',
  () => {
    itRestores(async () => {
      const bucket = await openTestBucket();
      const { credentials, region, endpoint, bucket: name } = bucket.options;
      const secret = join(folder, 'secret');
      writeFileSync(secret, credentials.secretAccessKey);
      return {
        settings: {
          ...{ type: 's3', bucket: name, region, endpoint, use_path_style: true },
          ...{ access_key_id: credentials.accessKeyId, secret_access_key_file: secret },
        },
        fileOf: (key) => join(bucket.folder, key),
      };
    }, S3_START_MS);
  },
);
