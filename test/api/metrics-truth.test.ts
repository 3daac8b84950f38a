import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { runApi } from '../../api/main';
import { createApiMetrics } from '../../platform/api-metrics';
import { configSchema } from '../../platform/config-schema';
import { createMetricsRegistry } from '../../platform/metrics';
import type { RunningProcess } from '../../platform/process';
import { BOUNDARY, batchForm, formBytes } from '../support/api';
import { freePort } from '../support/free-port';
import { metricValues } from '../support/metric-values';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../support/postgres';
import { insertBatch } from '../support/rows';
import { until } from '../support/until';

/** A known run of a whole API process moves every series of it by a known amount. */
let database: TestDatabase;
let folder: string;
let api: RunningProcess;
let scrapeUrl: string;
let during: Record<string, number>;

beforeAll(async () => {
  database = await withDatabase();
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'nightshift-api-metrics-'));
  await insertOpenBatches();
  const port = await freePort();
  scrapeUrl = `http://127.0.0.1:${port}/metrics`;
  const keyFile = path.join(folder, 'temporal-key');
  writeFileSync(keyFile, 'a key');
  const config = configSchema.parse({
    postgres: { url: database.url },
    // Nothing listens there.
    temporal: { address: '127.0.0.1:1', api_key_file: keyFile },
    object_store: { type: 'filesystem', path: folder },
    batch: { cancel_grace: '10s' },
    log: { level: 'error', format: 'json' },
    api: { port: 0, observability_port: port },
  });
  api = await runApi(config);
  // Looked at ten seconds after the start, while the other tests run.
  writeFileSync(keyFile, 'another key');
}, POSTGRES_START_MS);
afterAll(async () => {
  await api?.close();
  await database?.close();
  await fs.rm(folder, { recursive: true, force: true });
});

/** Two batches in progress, one of which is late; one that is cancelled, and one that has ended. */
async function insertOpenBatches(): Promise<void> {
  const nowSec = Math.floor(Date.now() / 1000);
  const { pool } = database;
  const counts = { total: 10, completed: 3, failed: 1 };
  const started = { workflow_started_at: new Date(), in_progress_at: nowSec - 100 };
  await insertBatch(pool, { status: 'in_progress', ...started, ...counts });
  const late = { expires_at: nowSec - 20 };
  await insertBatch(pool, { status: 'in_progress', ...started, ...counts, ...late });
  await insertBatch(pool, { status: 'cancelling', cancelling_at: nowSec - 50, ...started });
  await insertBatch(pool, { status: 'completed', ...counts, ...late });
}

async function scrape(): Promise<Record<string, number>> {
  return metricValues(await (await fetch(scrapeUrl)).text());
}

const upload = () =>
  fetch(`${api.url}/v1/files`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: new Uint8Array(formBytes(batchForm())),
  });
const get = async (url: string) => (await fetch(`${api.url}${url}`)).arrayBuffer();

it('answers requests of every kind', async () => {
  const file = (await (await upload()).json()) as { id: string };
  for (let i = 0; i < 2; i++) await get(`/v1/files/${file.id}/content`);
  await get('/v1/batches/batch_unknown');
  await get('/nowhere');
  await fetch(`${api.url}/v1/files/${file.id}`, { method: 'PROPFIND' });
});

it('answers 503 while the object store fails', async () => {
  const objects = path.join(folder, 'objects', 'files');
  await fs.rename(objects, `${objects}-away`);
  writeFileSync(objects, 'a file in the place of a folder');
  expect((await upload()).status).toBe(503);
  rmSync(objects);
  await fs.rename(`${objects}-away`, objects);
});

it('counts a client that disconnects before the answer', async () => {
  const { port } = new URL(api.url ?? '');
  const socket = net.connect(Number(port), '127.0.0.1');
  const head = `POST /v1/batches HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}content-length: 100\r\n\r\n{`);
  const inFlight = 'http_requests_in_flight{method="POST",path="/v1/batches"}';
  await until(async () => (await scrape())[inFlight] === 1, 5_000, 'the request');
  during = await scrape();
  socket.destroy();
  await until(async () => (await scrape())[inFlight] === 0, 5_000, 'the end of the request');
});

it('counts a connection that is closed because of what it sent', async () => {
  const { port } = new URL(api.url ?? '');
  const socket = net.connect(Number(port), '127.0.0.1');
  socket.resume().write('not HTTP\r\n\r\n');
  await once(socket, 'close');
});

it('watches its dependencies and the event loop', async () => {
  const isAway = async () => (await scrape())['dependency_up{dependency="temporal"}'] === 0;
  await until(isAway, 20_000, 'Temporal to be missed');
  const isSeen = async () => ((await scrape())['event_loop_delay_seconds_count'] ?? 0) > 0;
  await until(isSeen, 5_000, 'a delay');
});

it('takes over a changed API key of Temporal', async () => {
  const taken = 'credential_reloads_total{credential="temporal_api_key",result="success"}';
  await until(async () => (await scrape())[taken] === 1, 15_000, 'the new key');
});

describe('after this run', () => {
  it('every series has the value that it must have', async () => {
    const all = await scrape();
    const own = Object.entries(all).filter(([name]) => OWN.test(name));
    const exact = own.filter(([name, value]) => value !== 0 && !INEXACT.test(name));
    expect(Object.fromEntries(exact)).toEqual(EXPECTED);
    const oldest = 'batch_oldest_seconds{status="in_progress"}';
    expect(Math.floor((all[oldest] ?? 0) / 100)).toBe(1);
    expect(Math.floor((all['batch_oldest_seconds{status="cancelling"}'] ?? 0) / 50)).toBe(1);
  });

  it('no series is left that did not move', async () => {
    const all = { ...(await scrape()), ...positive(during) };
    const moved = new Set(
      Object.keys(positive(all)).map((name) => name.replace(/(_count)?(\{.*)?$/, '')),
    );
    const registry = createMetricsRegistry('api');
    registry.clear();
    createApiMetrics(registry);
    const registered = registry.getMetricsAsArray().map(({ name }) => name);
    expect(registered.filter((name) => !moved.has(name))).toEqual([]);
  });
});

function positive(all: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value > 0));
}

/** Series of ours, without those of Node. */
const OWN = /^(http_|batch|credential|dependency_up|file_storage|event_loop)/;
const INEXACT = /_(bucket\{|sum\b)|^(event_loop_delay|batch_oldest)/;

/** One request each, as counter and histogram. */
function answered(labels: string, count = 1): Record<string, number> {
  return {
    [`http_requests_total{${labels}}`]: count,
    [`http_request_duration_seconds_count{${labels}}`]: count,
  };
}

const EXPECTED = {
  ...answered('method="POST",path="/v1/files",status="200"'),
  ...answered('method="POST",path="/v1/files",status="503"'),
  ...answered('method="GET",path="/v1/files/:file_id/content",status="200"', 2),
  ...answered('method="GET",path="/v1/batches/:batch_id",status="404"'),
  ...answered('method="GET",path="unknown",status="404"'),
  ...answered('method="other",path="/v1/files/:file_id",status="405"'),
  ...answered('method="POST",path="/v1/batches",status="499"'),
  'http_connections_closed_total{reason="invalid"}': 1,
  'batches_open{status="in_progress"}': 2,
  'batches_open{status="cancelling"}': 1,
  'batches_overdue{status="in_progress"}': 1,
  batch_waiting_lines: 12,
  'credential_reloads_total{credential="temporal_api_key",result="success"}': 1,
  'dependency_up{dependency="postgres"}': 1,
  'dependency_up{dependency="object_store"}': 1,
  'file_storage_operations_total{operation="store",component="apiserver",status="success"}': 1,
  'file_storage_operations_total{operation="store",component="apiserver",status="exhausted"}': 1,
  'file_storage_operations_total{operation="retrieve",component="apiserver",status="success"}': 2,
};
