/**
 * The API for tests: a real database and a filesystem store in a folder of its own, Temporal replaced by
 * a port to the batch workflows that notes what it is told.
 */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { FastifyInstance, InjectOptions } from 'fastify';
import pino from 'pino';
import { buildApp } from '../../api/app';
import type { AppDeps } from '../../api/app-deps';
import { createOutbox, type Outbox, type OutboxOptions } from '../../api/outbox';
import type { BatchStart, BatchWorkflows } from '../../client/batch-workflows';
import { createApiMetrics } from '../../platform/api-metrics';
import { configSchema } from '../../platform/config-schema';
import { openHeaderVault } from '../../platform/header-vault';
import { createMetricsRegistry } from '../../platform/metrics';
import type { Registry } from '../../platform/metrics';
import type { ObjectStore } from '../../storage/object-store';
import { openFilesystemStore } from '../../storage/objects/filesystem';
import { createApiKeyRepository } from '../../storage/postgres/api-keys';
import { createBatchRepository } from '../../storage/postgres/batches/repository';
import { createFileRepository } from '../../storage/postgres/files';
import { createProviderJobs } from '../../storage/postgres/provider-jobs/repository';
import { createUploadRepository } from '../../storage/postgres/uploads';
import type { TenantLimits } from '../../storage/postgres/tenant-limits';
import { undocumented } from './documented';
import { type TestDatabase, withDatabase } from './postgres';
import { until } from './until';

/** A {@link BatchWorkflows} that notes its calls; `fail` makes the next ones fail, `hang` fail late. */
export interface RecordingBatchWorkflows extends BatchWorkflows {
  readonly started: BatchStart[];
  readonly cancelled: string[];
  fail: boolean;
  hang: boolean;
}

/** What a test may set differently. */
export interface TestApiOptions {
  readonly auth?: Record<string, unknown>;
  readonly limits?: TenantLimits;
  /** Further settings. */
  readonly config?: Record<string, unknown>;
  readonly deps?: Partial<AppDeps>;
  readonly outbox?: Partial<OutboxOptions>;
  /** `silent` where left out. */
  readonly logLevel?: string;
}

/** A running API of which everything inside can be looked at. */
export interface TestApi {
  readonly app: FastifyInstance;
  readonly database: TestDatabase;
  readonly store: ObjectStore;
  readonly batchWorkflows: RecordingBatchWorkflows;
  readonly outbox: Outbox;
  readonly registry: Registry;
  /** The wall clock, as the API sees it; moves only when a test moves it. */
  readonly clock: { nowMs: number };
  /** Keys of all objects in the store. */
  keys(): Promise<string[]>;
  call(options: InjectOptions): Promise<Answer>;
  close(): Promise<void>;
}

/** An answer with its JSON body parsed. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into it freely
  readonly body: any;
  readonly bytes: Buffer;
}

/** Opens a database and a store, and builds the app on them. The test file closes it. */
export async function openTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const database = await withDatabase();
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'nightshift-api-'));
  const store = await openFilesystemStore({ path: folder });
  const clock = { nowMs: 1_700_000_000_000 };
  const registry = createMetricsRegistry('api');
  const logger = pino(
    { level: options.logLevel ?? 'silent' },
    pino.destination({ fd: 2, sync: true }),
  );
  const batches = createBatchRepository(database.pool, { limits: options.limits ?? {} });
  const batchWorkflows = recordingBatchWorkflows();
  const nowMs = () => clock.nowMs;
  const outbox = createOutbox({
    batches,
    batchWorkflows: batchWorkflows,
    logger,
    nowMs,
    ...options.outbox,
  });
  const app = buildApp({
    config: configSchema.parse({ auth: options.auth ?? {}, ...options.config }),
    vault: openHeaderVault(configSchema.parse(options.config ?? {})),
    files: createFileRepository(database.pool, options.limits),
    batches,
    uploads: createUploadRepository(database.pool, options.limits),
    jobs: createProviderJobs(database.pool),
    apiKeys: createApiKeyRepository(database.pool),
    store,
    outbox,
    metrics: createApiMetrics(registry),
    logger,
    checks: { postgres: async () => void (await database.pool.query('select 1')) },
    nowMs,
    ...options.deps,
  });
  await app.ready();
  return {
    ...{ app, database, store, batchWorkflows: batchWorkflows, outbox, registry, clock },
    keys: async () => {
      const keys: string[] = [];
      for await (const { key } of store.list('')) keys.push(key);
      return keys;
    },
    call: (request) => call(app, request),
    close: async () => {
      await app.close();
      await outbox.close();
      await store.close();
      await database.close();
      await fs.rm(folder, { recursive: true, force: true });
    },
  };
}

async function call(app: FastifyInstance, request: InjectOptions): Promise<Answer> {
  const sent = withType(request);
  const response = await app.inject(sent);
  const isJson = /^application\/json/.test(String(response.headers['content-type']));
  const answer = {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    body: isJson && response.rawPayload.length > 0 ? response.json<unknown>() : null,
    bytes: response.rawPayload,
  };
  const { method = 'GET', url = '', payload } = request;
  const exchange = {
    method,
    url: typeof url === 'string' ? url : '',
    contentType: sent.headers?.['content-type']?.toString(),
    payload,
    status: answer.status,
    body: answer.body,
  };
  expect(await undocumented(exchange)).toEqual([]);
  return answer;
}

/** What a client sends that says nothing about its headers. */
function withType(request: InjectOptions): InjectOptions {
  if (request.payload === undefined || request.headers !== undefined) return request;
  return { ...request, headers: { 'content-type': 'application/json' } };
}

function recordingBatchWorkflows(): RecordingBatchWorkflows {
  const batchWorkflows: RecordingBatchWorkflows = {
    started: [],
    cancelled: [],
    fail: false,
    hang: false,
    start: async (batch) => {
      const hung = batchWorkflows.hang;
      await until(() => !batchWorkflows.hang, 30_000, 'the start to be let go');
      if (hung || batchWorkflows.fail) throw new Error('no Temporal');
      batchWorkflows.started.push(batch);
    },
    cancel: async (batchId) => {
      if (batchWorkflows.fail) throw new Error('no Temporal');
      batchWorkflows.cancelled.push(batchId);
    },
  };
  return batchWorkflows;
}

/** A part of a form; `filename` makes it a file. */
export interface TestPart {
  readonly name: string;
  readonly value: string | Buffer;
  readonly filename?: string;
}

export const BOUNDARY = 'xxBOUNDARYxx';

/** The bytes of a form, as a client would write them. */
export function formBytes(parts: readonly TestPart[], boundary = BOUNDARY): Buffer {
  const pieces = parts.flatMap(({ name, value, filename }) => [
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"` +
        (filename === undefined
          ? ''
          : `; filename="${filename}"\r\ncontent-type: application/octet-stream`) +
        '\r\n\r\n',
    ),
    Buffer.from(value as string),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

/** A request that uploads the form. */
export function upload(parts: readonly TestPart[], headers: Record<string, string> = {}) {
  return {
    method: 'POST' as const,
    url: '/v1/files',
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, ...headers },
    payload: formBytes(parts),
  };
}

/** A request that adds a part to an upload. */
export function uploadPart(
  uploadId: string,
  value: string | Buffer,
  headers: Record<string, string> = {},
) {
  const form = upload([{ name: 'data', value, filename: 'part' }], headers);
  return { ...form, url: `/v1/uploads/${uploadId}/parts` };
}

/** A request with a JSON body. */
export function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const payload = JSON.stringify(body);
  return {
    method: 'POST' as const,
    url,
    headers: { 'content-type': 'application/json', ...headers },
    payload,
  };
}

export const LINE = `${JSON.stringify({
  custom_id: 'a',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'm', messages: [] },
})}\n`;

/** A form with a valid batch file. */
export function batchForm(content: string | Buffer = LINE, filename = 'in.jsonl'): TestPart[] {
  return [
    { name: 'purpose', value: 'batch' },
    { name: 'file', value: content, filename },
  ];
}
