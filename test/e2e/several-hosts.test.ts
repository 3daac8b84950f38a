import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { ensureBuilt } from '../../cli/prepare.js';
import { describeWithGoTool } from '../support/go-tool';
import { startHost, type Host } from '../support/host';
import { customIdsIn } from '../support/journal-files';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../support/postgres';
import { startRecordingBackend, type RecordingBackend } from '../support/recording-backend';
import { openTestBucket, S3_START_MS } from '../support/s3';
import { chatLines, createBatch, resultLines, untilTerminal, upload } from '../support/stack';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';
import { until } from '../support/until';

const LINES = 900;
const IN_FLIGHT = 10;
const LATENCY_MS = 60;
const FLUSH_MS = 300;
const TEST_MS = 120_000;

let backend: RecordingBackend;
/** The model server of the worker that is killed. */
let victimBackend: RecordingBackend;
let database: TestDatabase;
let temporal: TestTemporal;
let folder: string;
/** Folder of the bucket, with each object as a file. */
let bucketFolder: string;
let settings: Record<string, unknown>;
const hosts: Host[] = [];

async function start(
  command: 'api' | 'worker',
  name: string,
  own: Record<string, unknown> = {},
): Promise<Host> {
  const host = await startHost({ command, name, folder, settings, own });
  hosts.push(host);
  return host;
}

async function sharedSettings(): Promise<Record<string, unknown>> {
  return {
    postgres: { url: database.url },
    temporal: { address: temporal.address, namespace: temporal.namespace },
    object_store: await bucketSettings(),
    global_inference_gateway: { url: backend.url, request_timeout: '10s', initial_backoff: '50ms' },
    concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
    worker: { heartbeat_timeout: '3s' },
  };
}

async function bucketSettings(): Promise<Record<string, unknown>> {
  const { options, folder: files } = await openTestBucket();
  bucketFolder = files;
  const { accessKeyId, secretAccessKey } = options.credentials;
  const secretFile = join(folder, 'secret-access-key');
  writeFileSync(secretFile, secretAccessKey);
  return {
    type: 's3',
    bucket: options.bucket,
    endpoint: options.endpoint,
    use_path_style: true,
    access_key_id: accessKeyId,
    secret_access_key_file: secretFile,
    flush_interval: `${FLUSH_MS}ms`,
  };
}

async function startHosts() {
  const role = (roles: string[]) => ({ worker: { roles } });
  const ofVictim = { global_inference_gateway: { url: victimBackend.url } };
  const [firstApi, api, batchWorker, victim] = await Promise.all([
    start('api', 'api-1'),
    start('api', 'api-2'),
    start('worker', 'batch-1', role(['batch'])),
    start('worker', 'exec-1', { ...role(['exec']), ...ofVictim }),
    start('worker', 'exec-2', role(['exec'])),
  ]);
  const killOneOfEach = async (): Promise<void> => {
    await Promise.all([firstApi.kill(), batchWorker.kill(), victim.kill()]);
    await start('worker', 'batch-2', role(['batch']));
  };
  return { firstApi, api, killOneOfEach };
}

function clientOf({ baseUrl }: Host): OpenAI {
  return new OpenAI({ baseURL: baseUrl, apiKey: 'unused' });
}

/** Every custom_id has one line, in order. */
async function expectWhole(client: OpenAI, batchId: string): Promise<void> {
  const done = await untilTerminal(client, batchId);
  expect(done).toMatchObject({
    status: 'completed',
    request_counts: { total: LINES, completed: LINES, failed: 0 },
  });
  const results = await resultLines(client, done.output_file_id);
  const expected = Array.from({ length: LINES }, (_, i) => `c-${i}`);
  expect(results.map((line) => line.custom_id)).toEqual(expected);
}

/** Lines of the killed worker whose answers are in the journal. */
function journalledOfVictim(batchId: string): Set<string> {
  const journalled = new Set(customIdsIn(join(bucketFolder, 'batches', batchId, 'journal')));
  const lines = victimBackend.seen.filter(({ body }) => journalled.has(customIdOf(body)));
  return new Set(lines.map(({ requestId }) => requestId));
}

/** The custom id of a line of {@link chatLines}, whose body has the same number. */
function customIdOf(body: string): string {
  return `c-${/question (\d+)/.exec(body)?.[1]}`;
}

/** Only lines that the killed worker had sent are sent again, and none that was journalled at the kill. */
function expectResendsOfVictimOnly(journalled: ReadonlySet<string>): void {
  const ids = (server: RecordingBackend) => server.seen.map(({ requestId }) => requestId);
  expect(new Set([...ids(backend), ...ids(victimBackend)]).size).toBe(LINES);
  expect(new Set(ids(backend)).size).toBe(backend.seen.length);
  expect(new Set(ids(victimBackend)).size).toBe(victimBackend.seen.length);
  expect(ids(backend).filter((id) => journalled.has(id))).toEqual([]);
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nightshift-hosts-'));
});
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.kill()));
  await temporal?.stop();
  await database?.close();
  await backend?.close();
  await victimBackend?.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

describeWithGoTool('versitygw', 'two APIs and three workers, each with folders of its own', () => {
  beforeAll(
    async () => {
      ensureBuilt();
      [backend, victimBackend, database, temporal] = await Promise.all([
        startRecordingBackend(LATENCY_MS),
        startRecordingBackend(LATENCY_MS),
        withDatabase(),
        startTemporal(),
      ]);
      settings = await sharedSettings();
    },
    S3_START_MS + POSTGRES_START_MS + TEMPORAL_START_MS,
  );

  it(
    'finish a batch with every line once although one of each kind is killed',
    async () => {
      const { firstApi, api, killOneOfEach } = await startHosts();
      const file = await upload(clientOf(firstApi), chatLines(LINES));
      const { id } = await createBatch(clientOf(api), file.id, '24h');
      const isAmid = () => [backend, victimBackend].every(({ seen }) => seen.length >= LINES / 8);
      await until(isAmid, 60_000, 'an eighth of the batch from each worker');
      await until(() => journalledOfVictim(id).size > 0, 20_000, 'a first answer in the journal');
      const journalled = journalledOfVictim(id);
      await killOneOfEach();
      await expectWhole(clientOf(api), id);
      expectResendsOfVictimOnly(journalled);
    },
    TEST_MS,
  );
});
