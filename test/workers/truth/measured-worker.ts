import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import pino from 'pino';
import type { ExecuteChunkResult, PlannedOrInvalid } from '../../../activities/contract';
import { batchIdFromBytes } from '../../../core/names/ids';
import type { Config } from '../../../platform/config-schema';
import { configSchema } from '../../../platform/config-schema';
import { createMetricsRegistry, type Registry } from '../../../platform/metrics';
import { createWorkerMetrics, type WorkerMetrics } from '../../../platform/worker-metrics';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import { measureJobs } from '../../../workers/job-metrics';
import { openResources, type WorkerResources } from '../../../workers/open-resources';
import { openStores } from '../../../workers/open-stores';
import { createActivities, type StepActivities } from '../../../workers/wiring';
import { movedSeries } from '../../support/metric-values';
import { NO_WAIT } from '../../support/no-wait';
import { withDatabase, type TestDatabase } from '../../support/postgres';
import { insertFile } from '../../support/rows';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy';
import { startFaultyServer, type FaultyServer } from './faulty-server';

/** A worker with all its parts except Temporal, whose activities a test calls. */
export interface MeasuredWorker {
  readonly config: Config;
  readonly metrics: WorkerMetrics;
  readonly registry: Registry;
  readonly database: TestDatabase;
  /** Between the worker and PostgreSQL. */
  readonly proxy: TcpProxy;
  readonly server: FaultyServer;
  readonly resources: WorkerResources;
  readonly activities: StepActivities;
  readonly drain: AbortController;
  /** Folder of the object store. */
  readonly folder: string;
  /** What reconcile learns of the workflow of a batch; it throws for all others. */
  readonly workflows: Map<string, 'missing'>;
  call<I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O>;
  /** A batch whose file has a line for each name; `model:fault` (see the server). */
  create(lines: readonly string[]): Promise<string>;
  ingest(batchId: string): Promise<PlannedOrInvalid & { kind: 'planned' }>;
  /** Runs all lines of a model. */
  chunk(batchId: string, model: string, over?: { boxMs?: number }): Promise<ExecuteChunkResult>;
  /** The nonce of the plan of a batch that was ingested. */
  nonceOf(batchId: string): string;
  /** Series that are not 0, without histogram buckets and sums. */
  moved(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

const ENDPOINT = '/v1/chat/completions';

/** Opens the worker as `runWorker` does, with a model server, and a proxy before PostgreSQL. */
export async function openMeasuredWorker(): Promise<MeasuredWorker> {
  const database = await withDatabase();
  const url = new URL(database.url);
  const proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'nightshift-truth-'));
  const server = await startFaultyServer();
  const config = configOf(url.href, { folder, server });
  const registry = createMetricsRegistry('worker');
  registry.clear();
  const metrics = createWorkerMetrics(registry);
  const drain = new AbortController();
  const context = { logger: pino({ level: 'silent' }), metrics, tracing: null };
  const stores = await openStores(config, { ...context, wait: NO_WAIT });
  const resources = await openResources(config, {
    ...{ ...context, stores, drain: drain.signal },
    onGuardTripped: () => undefined,
  });
  const workflows: MeasuredWorker['workflows'] = new Map();
  const activities = measured(resources, { metrics, workflows });
  return {
    ...{ config, metrics, registry, database, proxy, server, resources, activities, drain },
    ...{ folder, workflows, call },
    ...batchCalls({ database, resources, activities }),
    moved: async () => {
      const all = Object.entries(await movedSeries(registry));
      return Object.fromEntries(all.filter(([name]) => !/_(bucket\{|sum\b)/.test(name)));
    },
    close: async () => {
      await proxy.become('pass');
      drain.abort();
      for (const { run } of [...resources.release, ...stores.release]) await run();
      await Promise.all([server.close(), proxy.close()]);
      await database.close();
      await fs.rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs an activity as Temporal does. */
function call<I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> {
  const logger = new DefaultLogger('ERROR', () => undefined);
  return new MockActivityEnvironment({}, { logger }).run(activity, input);
}

type BatchCalls = Pick<MeasuredWorker, 'create' | 'ingest' | 'chunk' | 'nonceOf'>;

/** What a workflow does with a batch; rows are written beside the proxy. */
function batchCalls({
  database: { pool },
  resources,
  activities,
}: Pick<MeasuredWorker, 'database' | 'resources' | 'activities'>): BatchCalls {
  const rows = createBatchRepository(pool);
  const plans = new Map<string, PlannedOrInvalid & { kind: 'planned' }>();
  const planOf = (batchId: string) => {
    const plan = plans.get(batchId);
    if (plan === undefined) throw new Error(`${batchId} is not ingested`);
    return plan;
  };
  return {
    create: async (lines) => {
      const file = await insertFile(pool);
      await resources.store.putIfAbsent(file.key, Buffer.from(lines.map(inputLine).join('\n')));
      const id = batchIdFromBytes(randomBytes(16));
      const nowSec = Math.floor(Date.now() / 1000);
      await rows.insert({
        ...{ id, tenant: 't', endpoint: ENDPOINT, inputFileId: file.id, completionWindow: '1h' },
        ...{ metadata: null, outputExpiresAfterSec: null },
        ...{ createdAtSec: nowSec, expiresAtSec: nowSec + 3_600 },
      });
      return id;
    },
    ingest: async (batchId) => {
      const plan = await call(activities.ingest, { batchId });
      if (plan.kind !== 'planned') throw new Error('the file was refused');
      plans.set(batchId, plan);
      const total = plan.lineCount;
      await call(activities.projectStatus, { batchId, status: 'in_progress', total });
      return plan;
    },
    chunk: async (batchId, name, { boxMs = 20_000 } = {}) => {
      const { nonce, models } = planOf(batchId);
      const model = models.find((one) => one.model === name);
      const row = await rows.find(batchId);
      if (model === undefined || row === null) throw new Error(`no model ${name}`);
      return call(activities.executeChunk, {
        ...{ batchId, planNonce: nonce, tenant: 't', endpoint: ENDPOINT },
        ...{ inputKey: row.inputObjectKey ?? '', model: name, safe: model.safe },
        ...{ from: 0, to: model.entries, deadlineMs: row.expiresAtSec * 1000 },
        ...{ boxMs, p95Ms: null, priority: 3 },
      });
    },
    nonceOf: (batchId) => planOf(batchId).nonce,
  };
}

/** One line of an input file; the server answers by its fault. */
function inputLine(name: string, i: number): string {
  const [model = '', fault = 'ok'] = name.split(':');
  const body = { model, messages: [{ role: 'user', content: fault }], n: `${i}` };
  if (fault === 'invalid') return JSON.stringify({ custom_id: `c-${i}`, url: ENDPOINT, body });
  return JSON.stringify({ custom_id: `c-${i}`, method: 'POST', url: ENDPOINT, body });
}

function configOf(
  url: string,
  { folder, server }: { folder: string; server: FaultyServer },
): Config {
  const gateway = { request_timeout: '300ms', max_retries: 3, max_backoff: '10s' };
  const keyFile = path.join(folder, 'temporal-key');
  writeFileSync(keyFile, 'a key');
  return configSchema.parse({
    postgres: { url },
    object_store: { type: 'filesystem', path: folder },
    model_gateways: {
      a: { url: server.url, initial_backoff: '1ms', ...gateway },
      held: { url: server.url, initial_backoff: '2ms', ...gateway, request_timeout: '60s' },
      down: { url: server.closedUrl, initial_backoff: '10s', ...gateway },
    },
    concurrency: { global: 7, per_model: 4 },
    worker: { exec_slots: 5 },
    batch: { cancel_grace: '1s' },
    // A port on which nothing listens.
    temporal: { address: new URL(server.closedUrl).host, api_key_file: keyFile },
  });
}

function measured(
  resources: WorkerResources,
  { metrics, workflows }: Pick<MeasuredWorker, 'metrics' | 'workflows'>,
): StepActivities {
  const nothing = () => Promise.resolve();
  const maintenance: WorkerResources['maintenance'] = {
    ...resources.maintenance,
    workflows: {
      listRunning: () => Promise.resolve(new Set()),
      describe: (id) => {
        const state = workflows.get(id);
        return state === undefined
          ? Promise.reject(new Error('no answer'))
          : Promise.resolve(state);
      },
      ...{ start: nothing, cancel: nothing, terminate: nothing, deliverLater: nothing },
    },
  };
  return measureJobs(createActivities({ ...resources, maintenance }), { ...resources, metrics });
}
