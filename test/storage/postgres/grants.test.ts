import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { NO_USAGE } from '../../../core/batch/counts';
import {
  batchIdFromBytes,
  fileIdFromBytes,
  partIdFromBytes,
  uploadIdFromBytes,
} from '../../../core/names/ids';
import { createLogger } from '../../../platform/logger';
import { createApiKeyRepository } from '../../../storage/postgres/api-keys';
import { findBatchHeaders } from '../../../storage/postgres/batches/headers';
import { createBatchRepository } from '../../../storage/postgres/batches/repository';
import type { TerminalRecord } from '../../../storage/postgres/batches/types';
import { createFileRepository } from '../../../storage/postgres/files';
import { checkSchema, migrate } from '../../../storage/postgres/migrate';
import { openPool } from '../../../storage/postgres/pool';
import {
  showCounts,
  takeEpoch,
  touchRows,
  unreleased,
} from '../../../storage/postgres/progress-sql';
import { createProviderJobs } from '../../../storage/postgres/provider-jobs/repository';
import { listenForStops } from '../../../storage/postgres/stop-channel';
import { verifyStoreIdentity } from '../../../storage/postgres/store-identity';
import { createSweepRows } from '../../../storage/postgres/sweep';
import { enqueueRequests } from '../../../storage/postgres/tenant-limits';
import { createUploadRepository } from '../../../storage/postgres/uploads';
import { createWorkerRoutes } from '../../../storage/postgres/worker-routes';
import { type ComponentRoles, createComponentRoles } from '../../support/component-roles';
import { noted } from '../../support/noted-calls';
import { POSTGRES_START_MS, withDatabase, type TestDatabase } from '../../support/postgres';
import { insertBatch, insertFile } from '../../support/rows';
import { until } from '../../support/until';
import { callEveryMethod } from './provider-jobs/job-scene';

/** API and worker run as the users of docker-compose.yml, which have only the privileges that they need. */

const NOW_SEC = Math.floor(Date.now() / 1000);
const LONG_AGO_SEC = 1_000;
const HASH = randomBytes(32);

let database: TestDatabase;
let roles: ComponentRoles;
let owner: Pool;
let api: Pool;
let worker: Pool;

beforeAll(async () => {
  database = await withDatabase();
  roles = await createComponentRoles(database.pool, database.url);
  owner = openPool(roles.url('nightshift_migrate'), { max: 2 });
  api = openPool(roles.url('nightshift_api'), { max: 2 });
  worker = openPool(roles.url('nightshift_worker'), { max: 2 });
  await migrate(owner, {
    api: roles.name('nightshift_api'),
    worker: roles.name('nightshift_worker'),
  });
}, POSTGRES_START_MS);
afterAll(async () => {
  await Promise.all([owner, api, worker].map((pool) => pool.end()));
  await roles.remove();
  await database.close();
});

const UPLOADS = { maxUploads: 9, maxUploadParts: 9 };
const LIMITS = { maxBatches: 100, maxStoredBytes: 1e9, maxFiles: 100, ...UPLOADS };
/** Methods of the repository of batches, by caller. */
const CALLERS = {
  api: 'insert insertOnce quota get list claimCancel awaitsCancelSignal unstarted markStarted',
  steps:
    'find pinFiles claimCause recordPhase recordEnd recordUnfinalized beginStep noteFirstRequest',
  reconcile:
    'openPage findOpen find markStarted noteRestart addOverdue resetOverdue held live recordLateDelivery',
};

const request = (key: string) => {
  return { tenant: 't', route: 'r', key, nowSec: NOW_SEC, fingerprint: 'f' };
};

function newFile() {
  const id = fileIdFromBytes(randomBytes(16));
  const rest = { purpose: 'batch', filename: 'a.jsonl', bytes: 5, objectKey: `files/t/${id}` };
  return { id, tenant: 't', ...rest, createdAtSec: NOW_SEC, expiresAtSec: null, sha256: HASH };
}

function newBatch(inputFileId: string) {
  return {
    ...{
      id: batchIdFromBytes(randomBytes(16)),
      tenant: 't',
      endpoint: '/v1/embeddings',
      inputFileId,
    },
    ...{ completionWindow: '1h', metadata: { a: 'b' }, outputExpiresAfterSec: null },
    ...{ createdAtSec: NOW_SEC, expiresAtSec: NOW_SEC + 3_600 },
    headers: { keyId: 'k', sealed: Buffer.from('sealed') },
  };
}

describe('the API', () => {
  const id = { tenant: 't', nowSec: NOW_SEC };

  it('starts', async () => {
    await checkSchema(api);
    await verifyStoreIdentity(api, 'store');
  });

  it('keeps files', async () => {
    const { methods: files, uncalled } = noted(createFileRepository(api, LIMITS));
    const file = await files.insert(newFile());
    await files.insertOnce(newFile(), request('file'));
    await files.admit({ tenant: 't', bytes: 1, nowSec: NOW_SEC }, request('other'));
    expect(await files.get({ ...id, id: file.id })).toMatchObject({ bytes: 5 });
    await files.list({ tenant: 't', order: 'asc', limit: 1, after: file.id, nowSec: NOW_SEC });
    expect(await files.hide({ ...id, id: file.id })).toBe(true);
    expect(uncalled()).toEqual([]);
  });

  it('joins uploads', async () => {
    const { methods: uploads, uncalled } = noted(createUploadRepository(api, LIMITS));
    const make = () =>
      uploads.insert({
        ...{ id: uploadIdFromBytes(randomBytes(16)), tenant: 't', filename: 'a', purpose: 'batch' },
        ...{ bytes: 5, fileExpiresAfterSec: null, mimeType: 'application/jsonl' },
        ...{ createdAtSec: NOW_SEC, expiresAtSec: NOW_SEC + 3_600 },
      });
    const upload = await make();
    const at = { ...id, id: upload.id };
    const part = { id: partIdFromBytes(randomBytes(16)), uploadId: upload.id, bytes: 5 };
    await uploads.addPart(
      { ...part, createdAtSec: NOW_SEC, sha256: HASH, isRetry: false },
      NOW_SEC,
    );
    expect(await uploads.countParts(upload.id)).toBe(1);
    expect(await uploads.parts(upload.id)).toHaveLength(1);
    await uploads.noteRefusal(upload.id);
    await uploads.noteJoin(upload.id, 'key');
    const file = newFile();
    await uploads.complete({ uploadId: upload.id, partIds: [part.id], file, nowSec: NOW_SEC });
    const completed = await uploads.get(at);
    expect(completed).toMatchObject({ status: 'completed', fileId: file.id });
    if (completed !== null) expect(await uploads.fileOf(completed)).toMatchObject({ id: file.id });
    expect(await uploads.cancel({ ...id, id: (await make()).id })).toBe(true);
    expect(uncalled()).toEqual([]);
  });

  it('takes batches and cancels', async () => {
    const { methods: batches, uncalled } = noted(
      createBatchRepository(api, { limits: LIMITS }),
      CALLERS.api.split(' '),
    );
    const file = await createFileRepository(api).insert(newFile());
    const batch = await batches.insert(newBatch(file.id));
    const made = await batches.insertOnce(newBatch(file.id), request('batch'));
    expect(made.kind).toBe('made');
    expect((await batches.insertOnce(newBatch(file.id), request('batch'))).kind).toBe('repeated');
    expect(await batches.get(batch.id, 't')).toMatchObject({ status: 'validating' });
    expect(await batches.quota('t')).toMatchObject({ limit: 100 });
    await batches.list({ tenant: 't', limit: 5, after: batch.id });
    expect(await batches.unstarted(NOW_SEC + 1, 5)).toHaveLength(2);
    await batches.markStarted(batch.id);
    expect(await batches.claimCancel(batch.id, 't', NOW_SEC)).toMatchObject({ claimed: true });
    expect(await batches.awaitsCancelSignal(batch.id)).toBe(true);
    expect(uncalled()).toEqual([]);
  });

  it('looks up keys that the owner of the tables has created', async () => {
    const { key } = await createApiKeyRepository(owner).create({
      ...{ tenant: 't', name: 'n', expiresAtSec: null, nowSec: NOW_SEC },
    });
    const found = await createApiKeyRepository(api).authenticate(key, NOW_SEC);
    expect(found).toEqual({ tenant: 't' });
    const [record] = await createApiKeyRepository(owner).list();
    expect(record).toMatchObject({ lastUsedAtSec: NOW_SEC });
  });
});

it('lists a caller for each method of the repository of batches', () => {
  const all = Object.keys(createBatchRepository(owner));
  expect([...new Set(Object.values(CALLERS).join(' ').split(' '))].sort()).toEqual(all.sort());
});

describe('the worker', () => {
  const options = { outputFilesSec: 3_600 };
  const chunk = { safeModel: 'm', from: 0, to: 9 };
  function terminal(batchId: string): TerminalRecord {
    const file = { bytes: 10, filename: 'o.jsonl', objectKey: `files/t/${batchId}` };
    return {
      ...{ batchId, cause: null, counts: { total: 3, completed: 2, failed: 1 }, usage: NO_USAGE },
      ...{ model: 'm', errorFile: null, errors: null },
      outputFile: { id: fileIdFromBytes(randomBytes(16)), ...file },
    };
  }

  const insert = (over = {}) => insertBatch(owner, over);
  it('brings batches to their ends', async () => {
    await checkSchema(worker);
    await verifyStoreIdentity(worker, 'store');
    const { methods: records, uncalled } = noted(
      createBatchRepository(worker, options),
      CALLERS.steps.split(' '),
    );
    const [id, stopped] = [await insert(), await insert()];
    await owner.query(`insert into batch_headers values ($1, 'k', '')`, [id]);
    expect(await findBatchHeaders(worker, id)).toMatchObject({ keyId: 'k' });
    expect(await records.find(id)).toMatchObject({ status: 'validating' });
    expect(await enqueueRequests(worker, { batchId: id, requests: 3, max: 10 })).toBe(true);
    expect(await records.beginStep(id, { step: 'ingestion', worker: 'w' })).not.toBeNull();
    expect(await records.pinFiles(id, ['file-unknown'])).toEqual([]);
    expect(await records.noteFirstRequest(id, 0)).not.toBeNull();
    await records.recordPhase(id, { status: 'in_progress', total: 3, model: 'm', models: ['m'] });
    expect(await records.recordEnd(terminal(id))).toBe('completed');
    expect(await findBatchHeaders(worker, id)).toBeNull();
    await records.claimCause(stopped, 'expired');
    expect(await records.recordUnfinalized(stopped, null)).toMatchObject({ status: 'expired' });
    expect(uncalled()).toEqual([]);
  });

  it('shows progress', async () => {
    const batchId = await insert({ status: 'in_progress', total: 9 });
    const asked = { batchId, ...chunk, worker: 'w', yielding: false };
    const { epoch } = await takeEpoch(worker, asked);
    const row = { batchId, ...chunk, epoch: epoch ?? 0, completed: 4, failed: 0, released: false };
    expect(await touchRows(worker, [row])).toMatchObject([{ held: true }]);
    await showCounts(worker, [batchId]);
    expect(await unreleased(worker, batchId)).toMatchObject({ rows: 1 });
  });

  it('receives a notification when the API claims a cancel', async () => {
    const heard: string[] = [];
    const url = roles.url('nightshift_worker');
    const logger = createLogger({ level: 'error', format: 'json' }, 'worker');
    const stops = listenForStops({ url, logger, onStop: (batchId) => heard.push(batchId) });
    try {
      await until(
        async () => {
          const id = await insert({ status: 'in_progress' });
          await createBatchRepository(api).claimCancel(id, 't', NOW_SEC);
          return heard.length > 0;
        },
        10_000,
        'a notification',
      );
    } finally {
      await stops.close();
    }
  });

  it('reconciles', async () => {
    const { methods: rows, uncalled } = noted(
      createBatchRepository(worker, options),
      CALLERS.reconcile.split(' '),
    );
    const id = await insert({ status: 'in_progress', workflow_started_at: new Date() });
    expect(await rows.openPage({ afterSeq: 0, limit: 100 })).not.toEqual([]);
    expect(await rows.findOpen(id)).toMatchObject({ id });
    await rows.markStarted(id);
    await rows.noteRestart(id);
    await rows.addOverdue([id]);
    await rows.resetOverdue(id);
    const starting = { name: '1@host', host: 'host', uptimeSec: 1 };
    await createBatchRepository(worker).beginStep(id, { step: 'ingestion', worker: '2@host' });
    expect(await rows.held(starting)).toContainEqual({
      id,
      status: 'in_progress',
      holder: '2@host',
    });
    expect(await rows.live(['2@host'], '1@host')).toEqual(new Set());
    const failed = await insert({ status: 'failed', failed_at: NOW_SEC });
    expect(await rows.find(failed)).toMatchObject({ status: 'failed' });
    expect(await rows.recordLateDelivery(terminal(failed))).toBe('failed');
    expect(uncalled()).toEqual([]);
  });

  it('sweeps', async () => {
    const { methods: rows, uncalled } = noted(createSweepRows(worker));
    const page = { endedBeforeSec: NOW_SEC - 10, afterSeq: 0, limit: 10 };
    const hidden = await insertFile(owner, { deleted_at: LONG_AGO_SEC });
    const ended = await insert({ status: 'completed', completed_at: LONG_AGO_SEC });
    await owner.query(
      `insert into uploads (id, tenant, filename, purpose, mime_type, bytes, created_at, expires_at)
       values ('upload-old', 't', 'a', 'batch', 'x', 5, 1, 2)`,
    );
    await owner.query(
      `insert into upload_parts (id, upload_id, bytes, sha256, created_at)
       values ('part-old', 'upload-old', 5, $1, 1)`,
      [HASH],
    );
    expect((await rows.filesToEmpty(10)).map(({ id }) => id)).toContain(hidden.id);
    await rows.markEmptied([hidden.id]);
    expect(await rows.removeFiles(10)).toBe(1);
    expect(await rows.batchesToClear(page)).toMatchObject([{ id: ended }]);
    await rows.markCleared([ended]);
    expect(await rows.batchesToRemove(page)).toMatchObject([{ id: ended }]);
    await rows.removeBatches([ended]);
    await rows.forgetPlaces(10);
    await rows.removeReleasedJobs(10);
    await rows.removeStaleProgress(10);
    expect(await rows.uploadsToClear(10)).toMatchObject([{ id: 'upload-old' }]);
    await rows.markUploadsCleared(['upload-old']);
    expect(await rows.removeUploads(10)).toBe(1);
    expect(await rows.unownedKeys(['files/t/file-none', 'uploads/u/none'])).toHaveLength(2);
    await rows.removeIdempotencyKeys(10);
    expect(await rows.withoutRow(['batch_none'])).toEqual(['batch_none']);
    expect(uncalled()).toEqual([]);
  });

  it('keeps jobs at providers, which the API reads', async () => {
    const { methods: jobs, uncalled } = noted(createProviderJobs(worker));
    const batchId = await insert({ status: 'in_progress' });
    const id = await callEveryMethod(jobs, batchId);
    expect(await createProviderJobs(api).ofBatch(batchId, 't')).toMatchObject([{ id }]);
    expect(uncalled()).toEqual([]);
  });

  it('announces its routes', async () => {
    const routes = noted(createWorkerRoutes(worker));
    await routes.methods.announce('w', { global: 1_000, models: {} });
    expect(await routes.methods.announce('v', { global: 1_000, models: {} })).toHaveLength(1);
    expect(routes.uncalled()).toEqual([]);
  });
});

const DENIED = { code: '42501' };

it.each([
  'select sealed from batch_headers',
  `insert into api_keys (id, hash, tenant, name, created_at) values ('a', '', 't', 'n', 1)`,
  `update api_keys set tenant = 'another'`,
  'update api_keys set revoked_at = null',
  'delete from batches',
  'delete from files',
  'select * from chunk_progress',
  `insert into schema_migrations (id, name) values (99, 'x')`,
  'alter table batches add column x integer',
  'delete from provider_jobs',
  'drop table batches',
  'create table mine (a integer)',
  'create temporary table mine (a integer)',
  `select pg_read_file('/etc/passwd')`,
])('the API may not: %s', async (statement) => {
  await expect(api.query(statement)).rejects.toMatchObject(DENIED);
});

it.each([
  'select * from api_keys',
  `insert into batches (id) values ('b')`,
  `insert into uploads (id) values ('b')`,
  'select * from upload_parts',
  `insert into idempotency_keys (tenant) values ('t')`,
  `select setval('chunk_epoch', 1)`,
  `update installation set store_id = 'x'`,
  'truncate batches',
  'drop table batches',
  'create table mine (a integer)',
])('the worker may not: %s', async (statement) => {
  await expect(worker.query(statement)).rejects.toMatchObject(DENIED);
});

it('lets users connect only to their own databases, and Temporal create its tables', async () => {
  const query = async (url: string, statement: string): Promise<unknown> => {
    const pool = new Pool({ connectionString: url, max: 1 });
    return pool.query(statement).finally(() => pool.end());
  };
  for (const name of ['temporal', 'temporal_visibility']) {
    await query(roles.url('temporal', name), 'create table executions (a integer)');
    const others = ['nightshift_migrate', 'nightshift_api', 'nightshift_worker'] as const;
    for (const role of others) {
      await expect(query(roles.url(role, name), 'select 1')).rejects.toMatchObject(DENIED);
    }
  }
  await expect(query(roles.url('temporal'), 'select 1')).rejects.toMatchObject(DENIED);
});

it('fails with an error that says what to do if the user has no privileges', async () => {
  for (const table of ['schema_migrations', 'installation']) {
    await owner.query(`revoke all on ${table} from ${roles.name('nightshift_api')}`);
  }
  const refused = {
    code: 'config_invalid',
    message: expect.stringMatching(/permission denied .*: run nightshift migrate as the owner/),
  };
  await expect(checkSchema(api)).rejects.toMatchObject(refused);
  await expect(verifyStoreIdentity(api, 'store')).rejects.toMatchObject(refused);
  await migrate(owner, { api: roles.name('nightshift_api') });
  await checkSchema(api);
  await verifyStoreIdentity(api, 'store');
});

it('can grant again, and names a role that does not exist', async () => {
  await migrate(owner, { worker: roles.name('nightshift_worker') });
  await expect(migrate(owner, { api: 'nobody"s' })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('the database has no role nobody"s'),
  });
});
