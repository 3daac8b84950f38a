'use strict';

/**
 * The Go batch-gateway (github.com/opendatahub-io/batch-gateway): API server, processor and Redis, with a database in
 * the PostgreSQL that Nightshift uses too. Its garbage collector is left out, as it would only cost time.
 *
 * `--batch-gateway <dir>` names a folder whose `bin` has `apiserver` and `batch-processor`, built with
 * `go build ./cmd/...`. They read their secrets from one fixed folder, so this needs root.
 */
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { freePort } = require('../../test/support/free-port');
const { createClient, expectComplete } = require('../api-client');
const { startChild } = require('../children');
const { createDatabase } = require('./database');

const SECRETS = '/etc/.secrets';
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
/** The shortest that its manual shows; the default of 5 s would be all that a small batch waits for. */
const POLL = '100ms';
/** As in its examples. */
const RETRIES = { max_retries: 3, initial_backoff: '1s', max_backoff: '60s' };

/** @returns {string | null} why it cannot be measured here */
function whyNoBatchGateway({ batchGatewayDir }) {
  if (batchGatewayDir === undefined) return 'no --batch-gateway folder is named';
  const programs = ['apiserver', 'batch-processor'];
  const absent = programs.find((name) => !fs.existsSync(path.join(batchGatewayDir, 'bin', name)));
  if (absent !== undefined) return `there is no ${path.join(batchGatewayDir, 'bin', absent)}`;
  if (spawnSync('redis-server', ['--version']).status !== 0) return 'there is no redis-server';
  if (process.getuid() !== 0) return `its secrets are in ${SECRETS}, which only root can write`;
  return fs.existsSync(SECRETS) ? `${SECRETS} exists` : null;
}

/**
 * @param {object} scene mock and PostgreSQL
 * @param {number} inFlight
 * @returns {Promise<{ run(work: { file: string, lines: number, timeoutMs: number }): Promise<number>, close(): Promise<void> }>}
 *   `run` gives the seconds from create to `completed`
 */
async function openBatchGateway({ bench, mock, product }, inFlight) {
  const folder = fs.mkdtempSync(path.join(bench.scratch, 'batch-gateway-'));
  const undo = [async () => fs.rmSync(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  const start = async (options) => {
    const child = await startChild({ ...options, readyTimeoutMs: READY_TIMEOUT_MS });
    undo.push(() => child.stop(STOP_TIMEOUT_MS));
  };
  try {
    const ports = await freePorts(['redis', 'api', 'apiHealth', 'processorHealth']);
    const database = await createDatabase(product.postgresUrl);
    undo.push(() => database.drop());
    writeSecrets({ redisPort: ports.redis, databaseUrl: database.url }, undo);
    writeConfigs(folder, { ports, inFlight, origin: mock.url });
    await start(redis(folder, ports.redis));
    await start(server(bench, folder, { name: 'apiserver', port: ports.apiHealth }));
    await start(server(bench, folder, { name: 'batch-processor', port: ports.processorHealth }));
    const client = createClient(`http://127.0.0.1:${ports.api}/v1`);
    return { run: (work) => wholeBatch({ client, mock }, work), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function wholeBatch({ client, mock }, { file, lines, timeoutMs }) {
  const { id, sentMs } = await client.create(await client.upload(file));
  const isNear = () => mock.hasAnswered(lines);
  const { batch, atMs } = await client.ended(id, { everyMs: 50, timeoutMs, isNear });
  expectComplete(batch, lines);
  return (atMs - sentMs) / 1000;
}

async function freePorts(names) {
  const ports = {};
  for (const name of names) ports[name] = await freePort();
  return ports;
}

function writeSecrets({ redisPort, databaseUrl }, undo) {
  fs.mkdirSync(SECRETS, { mode: 0o700 });
  const remove = () => fs.rmSync(SECRETS, { recursive: true, force: true });
  process.once('exit', remove);
  undo.push(async () => {
    process.removeListener('exit', remove);
    remove();
  });
  fs.writeFileSync(path.join(SECRETS, 'redis-url'), `redis://127.0.0.1:${redisPort}`);
  fs.writeFileSync(path.join(SECRETS, 'postgresql-url'), databaseUrl);
}

/** JSON is YAML too. */
function writeConfigs(folder, { ports, inFlight, origin }) {
  const shared = {
    file_client: { type: 'fs', fs: { base_path: path.join(folder, 'files') } },
    db_client: { type: 'postgresql' },
  };
  const api = {
    host: '127.0.0.1',
    port: String(ports.api),
    observability_port: String(ports.apiHealth),
    write_timeout_seconds: 900,
    file_api: { max_line_count: 2_000_000, max_size_bytes: 2 ** 31 },
    ...shared,
  };
  const processor = {
    num_workers: 20,
    poll_interval: POLL,
    task_wait_time: '50ms',
    work_dir: path.join(folder, 'work'),
    addr: `127.0.0.1:${ports.processorHealth}`,
    heartbeat_interval: '60s',
    concurrency: {
      global: inFlight,
      per_endpoint: inFlight,
      recovery: 5,
      aimd: { enabled: false },
    },
    global_inference_gateway: { url: origin, request_timeout: '5m', ...RETRIES },
    ...shared,
  };
  for (const name of ['files', 'work']) fs.mkdirSync(path.join(folder, name));
  fs.writeFileSync(path.join(folder, 'apiserver.yaml'), JSON.stringify(api));
  fs.writeFileSync(path.join(folder, 'batch-processor.yaml'), JSON.stringify(processor));
}

/** Without snapshots: Redis only queues. */
function redis(folder, port) {
  const options = { port, bind: '127.0.0.1', save: '', appendonly: 'no', dir: folder };
  return {
    command: 'redis-server',
    args: Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    isReady: (line) => line.includes('Ready to accept connections'),
  };
}

function server({ batchGatewayDir }, folder, { name, port }) {
  return {
    command: path.join(batchGatewayDir, 'bin', name),
    args: [`--config=${path.join(folder, `${name}.yaml`)}`, '--v=0'],
    cwd: folder,
    readyUrl: `http://127.0.0.1:${port}/ready`,
  };
}

module.exports = { openBatchGateway, whyNoBatchGateway };
