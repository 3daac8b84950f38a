import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';
import { ApplicationFailure, type Payload } from '@temporalio/common';
import type { Worker } from '@temporalio/worker';
import { openClient } from '../../client/connection';
import { loadDataConverter } from '../../client/data-converter';
import type { TemporalConfig } from '../../client/temporal-credentials';
import { batchIdFromBytes } from '../../core/names/ids';
import { configSchema } from '../../platform/config-schema';
import { createLogger } from '../../platform/logger';
import { createWorkers } from '../../workers/create-workers';
import { openWorkerConnection } from '../../workers/temporal-connection';
import type { WorkerActivities } from '../../workers/wiring';
import { BATCH_QUEUE, BATCH_WORKFLOW, EXEC_QUEUE } from '../../workflows/contract';
import { pem } from '../client/grpc-server';
import { NO_WAIT } from '../support/no-wait';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch } from '../workflows/fake-batch';
import { tracingPlugin, workflowBundle } from '../workflows/play-scenario';

const TIMEOUT_MS = 60_000;
const logger = createLogger({ level: 'error', format: 'json' }, 'test');
let temporal: TestTemporal;
let folder: string;
/** Reloads of the worker's connection. */
const reloads: string[] = [];

beforeAll(async () => {
  temporal = await startTemporal();
  await workflowBundle();
}, TEMPORAL_START_MS);
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-worker-tls-'))));
afterEach(() => rmSync(folder, { recursive: true }));
afterAll(() => temporal?.stop());

/** A proxy that ends TLS before Temporal, and knows its clients by their certificates. */
async function startTlsProxy(target: number) {
  const open = new Set<{ readonly client: string; readonly sockets: Socket[] }>();
  const banned = new Set<string>();
  const server = createServer(
    {
      cert: readFileSync(pem('server')),
      key: readFileSync(pem('server-key')),
      ca: readFileSync(pem('ca')),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
    },
    (near: TLSSocket) => {
      const client = String(near.getPeerCertificate().subject.CN);
      const far = connect(target, '127.0.0.1');
      const entry = { client, sockets: [near, far] };
      open.add(entry);
      near.pipe(far).pipe(near);
      for (const socket of entry.sockets) {
        socket.on('error', () => undefined);
        socket.on('close', () => {
          open.delete(entry);
          for (const either of entry.sockets) either.destroy();
        });
      }
      if (banned.has(client)) near.destroy();
    },
  );
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const ban = (client: string): void => {
    banned.add(client);
    for (const entry of open) if (entry.client === client) entry.sockets[0]?.destroy();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    knows: (client: string) => [...open].some((entry) => entry.client === client),
    ban,
    close: async () => {
      for (const { sockets } of open) for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** Runs `body` beside the product's workers, which work on `batch` with these settings. */
async function withWorkers(
  config: TemporalConfig,
  batch: FakeBatch,
  body: () => Promise<void>,
): Promise<void> {
  const observer = {
    reloaded: (credential: string, result: string) => void reloads.push(`${credential} ${result}`),
  };
  const wait = NO_WAIT;
  const connection = await openWorkerConnection({ config, logger, wait, observer, everyMs: 50 });
  const workers: Worker[] = await createWorkers({
    connection: connection.first,
    dataConverter: loadDataConverter(config),
    namespace: config.namespace,
    config: configSchema.parse({}),
    activities: batch.activities() as unknown as WorkerActivities,
    execQueues: [EXEC_QUEUE],
    delegateQueues: [],
    workflowBundle: await workflowBundle(),
    plugins: [tracingPlugin()],
    drainBudgetMs: 1_000,
    identity: 'test',
  });
  connection.follow(workers);
  const runs = workers.map((worker) => worker.run());
  try {
    await body();
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(runs);
    await connection.close();
  }
}

function startBatch(client: ReturnType<typeof openClient>) {
  const batchId = batchIdFromBytes(randomBytes(16));
  return client.workflow.start(BATCH_WORKFLOW, {
    workflowId: batchId,
    taskQueue: BATCH_QUEUE,
    args: [{ batchId }],
  });
}

function putClient(name: 'first' | 'second'): void {
  for (const [from, to] of [
    [pem(name), 'client.pem'],
    [pem(`${name}-key`), 'client-key.pem'],
  ] as const) {
    copyFileSync(from, join(folder, 'draft'));
    renameSync(join(folder, 'draft'), join(folder, to));
  }
}

it(
  'uses changed certificates while batches run, without a restart',
  async () => {
    const proxy = await startTlsProxy(Number(temporal.address.split(':')[1]));
    putClient('first');
    const tls = {
      ca_cert_file: pem('ca'),
      client_cert_file: join(folder, 'client.pem'),
      client_key_file: join(folder, 'client-key.pem'),
      server_name: 'temporal.test',
    };
    const { address } = proxy;
    const { namespace } = temporal;
    const config = configSchema.parse({ temporal: { address, namespace, tls } }).temporal;
    let isReplaced = false;
    const batch = new FakeBatch({
      onChunk: () => until(() => isReplaced, 30_000, 'new certificates').then(() => undefined),
    });
    try {
      await withWorkers(config, batch, async () => {
        const direct = openClient(
          configSchema.parse({ temporal: { address: temporal.address, namespace } }).temporal,
        );
        const first = await startBatch(direct);
        await until(() => batch.chunks.length > 0, 20_000, 'a first chunk');
        putClient('second');
        await until(() => proxy.knows('second client'), 20_000, 'a connection with them');
        proxy.ban('first client');
        isReplaced = true;
        await expect(first.result()).resolves.toMatchObject({ status: 'completed' });
        expect(batch.chunks).toHaveLength(batch.models.length);
        const taken = () => reloads.filter((one) => one === 'temporal_certificates success');
        await until(() => taken().length === 1, 5_000, 'the reload to be counted');
        await direct.connection.close();
      });
    } finally {
      await proxy.close();
    }
  },
  TIMEOUT_MS,
);

describe('with a payload codec', () => {
  const SECRET = 'classified';

  function secured(): TemporalConfig {
    const codec = join(folder, 'payload-codec.js');
    copyFileSync(join(__dirname, '..', '..', 'examples', 'payload-codec.js'), codec);
    writeFileSync(join(folder, 'payload.key'), randomBytes(32).toString('hex'));
    const { address, namespace } = temporal;
    return configSchema.parse({ temporal: { address, namespace, payload_codec: codec } }).temporal;
  }

  it(
    'runs a batch whose payloads and failure messages are unreadable in the history',
    async () => {
      const config = secured();
      const batch = new FakeBatch({
        models: [{ model: `${SECRET}-model`, entries: 40 }],
        onIngest: ({ transitions }) =>
          transitions.length > 0 && failOnce()
            ? Promise.reject(ApplicationFailure.retryable(`${SECRET} reason`))
            : Promise.resolve(),
      });
      let isFailed = false;
      const failOnce = (): boolean => !isFailed && (isFailed = true);
      const client = openClient(config);
      await withWorkers(config, batch, async () => {
        const handle = await startBatch(client);
        await expect(handle.result()).resolves.toMatchObject({ status: 'completed', total: 40 });
        const history = await handle.fetchHistory();
        expect(isFailed).toBe(true);
        expect(readable(history)).toContain(handle.workflowId);
        expect(readable(history)).not.toContain(SECRET);
        const plain = JSON.stringify(await decoded(client, history));
        expect(plain).toContain(`${SECRET}-model`);
        expect(plain).toContain(`${SECRET} reason`);
      });
      await client.connection.close();
    },
    TIMEOUT_MS,
  );

  /** All texts and bytes of the history except search attributes, which Temporal must be able to read. */
  function readable(history: unknown): string {
    const texts: string[] = [];
    walk(history, (value) => {
      if (typeof value === 'string') texts.push(value);
      if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString('latin1'));
    });
    return texts.join('\n');
  }

  async function decoded(client: ReturnType<typeof openClient>, history: unknown) {
    const [codec] = client.options.loadedDataConverter.payloadCodecs;
    const found: Payload[] = [];
    walk(history, (value) => {
      if (isPayload(value)) found.push(value);
    });
    const payloads = (await codec?.decode(found)) ?? [];
    return payloads.map(({ data }) => Buffer.from(data ?? []).toString());
  }

  function walk(value: unknown, visit: (value: unknown) => void): void {
    visit(value);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key !== 'searchAttributes') walk(inner, visit);
    }
  }

  function isPayload(value: unknown): value is Payload {
    return typeof value === 'object' && value !== null && 'metadata' in value && 'data' in value;
  }
});
