import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { countReloads } from '../../../client/count-reloads';
import { watchCredentials } from '../../../client/credential-watch';
import { readCredentials } from '../../../client/temporal-credentials';
import { batchRecordKey } from '../../../core/names/object-names';
import { watchDependencies } from '../../../platform/dependency-watch';
import { watchEventLoopDelay } from '../../../platform/event-loop-delay';
import { packageRoot } from '../../../platform/package-root';
import { countLeftBehind, findHeld } from '../../../workers/left-behind';
import { POSTGRES_START_MS } from '../../support/postgres';
import { insertBatch, insertFile } from '../../support/rows';
import { until } from '../../support/until';
import { openMeasuredWorker, type MeasuredWorker } from './measured-worker';
import { acquire } from '../../support/promises-of-sending';

/**
 * A known run of a worker moves every series by a known amount: real database, store, journal, permits and
 * model server, activities called as Temporal calls them. The last test compares all series with one table.
 */
const DAY_SEC = 24 * 3600;

let world: MeasuredWorker;
/** Gauges in the middle of the run. */
let during: Record<string, number>;

beforeAll(async () => {
  world = await openMeasuredWorker();
}, POSTGRES_START_MS);
afterAll(() => world?.close());
afterEach(() => jest.restoreAllMocks());

const finalize = (batchId: string, cause: 'cancelled' | 'expired' | 'failed' | null = null) =>
  world.call(world.activities.finalize, { batchId, nonce: nonceOf(batchId), cause });
const planned = new Set<string>();
const nonceOf = (batchId: string) => (planned.has(batchId) ? world.nonceOf(batchId) : null);

async function ingested(lines: readonly string[]): Promise<string> {
  const id = await world.create(lines);
  await world.ingest(id);
  planned.add(id);
  return id;
}

/** A batch of successful lines that has run and is not finalized. */
async function answered(): Promise<string> {
  const id = await ingested(['a', 'a', 'a']);
  await world.chunk(id, 'a');
  return id;
}

function untilCounted(series: string, count: number): Promise<unknown> {
  const isCounted = async () => ((await world.moved())[series] ?? 0) >= count;
  return until(isCounted, 5_000, `${series} to reach ${count}`);
}

const claim = (batchId: string, cause: 'cancelled' | 'expired' | 'failed') =>
  world.call(world.activities.claimStop, { batchId, cause });

it('runs a batch with a fault of every kind', async () => {
  const id = await ingested([
    ...['a', 'a', 'a:refused', 'a:rate_limited', 'a:server_error', 'a:client_status'],
    ...['a:dropped', 'a:connection', 'a:timeout'],
  ]);
  await world.chunk(id, 'a');
  await world.call(world.activities.projectStatus, { batchId: id, status: 'finalizing' });
  expect(await finalize(id)).toMatchObject({ status: 'completed' });
});

it('fails to reach a server, and gives the line back', async () => {
  // The pause before the next try is longer than the time slice.
  jest.spyOn(Math, 'random').mockReturnValue(0.9);
  const id = await ingested(['down']);
  expect(await world.chunk(id, 'down', { boxMs: 100 })).toMatchObject({ left: 'box' });
  await claim(id, 'failed');
  expect(await finalize(id, 'failed')).toMatchObject({ status: 'failed' });
});

it('shows what is at work while a request is held, and notices that PostgreSQL is away', async () => {
  const id = await ingested(['held:held', 'held:paused']);
  const running = world.chunk(id, 'held');
  await until(() => world.server.held() === 1, 5_000, 'a held request');
  await until(
    async () => (await world.moved())['model_paused{model="held"}'] === 1,
    5_000,
    'the pause of the model',
  );
  // Written beside the request. The outage must not hit it, because it is repeated only after 5 s.
  await untilCounted('batch_first_request_seconds_count', 3);
  during = await world.moved();
  await world.proxy.become('refuse');
  await expect(world.call(world.activities.openBatch, { batchId: id })).rejects.toThrow();
  const isNoticed = async () => 'progress_write_failures_total' in (await world.moved());
  await until(isNoticed, 10_000, 'progress that is not written');
  await world.proxy.become('pass');
  world.server.release();
  await running;
  expect(await finalize(id)).toMatchObject({ status: 'completed' });
});

it('refuses an input file', async () => {
  const id = await world.create(['a:invalid']);
  await world.call(world.activities.ingest, { batchId: id });
  expect(await finalize(id)).toMatchObject({ status: 'failed' });
});

it('cancels batches that wait, run and finalize', async () => {
  const [waiting, running, ending] = [
    await world.create(['a']),
    await answered(),
    await answered(),
  ];
  await world.call(world.activities.projectStatus, { batchId: ending, status: 'finalizing' });
  for (const id of [waiting, running, ending]) {
    await claim(id, 'cancelled');
    expect(await finalize(id, 'cancelled')).toMatchObject({ status: 'cancelled' });
    // A finalization that is repeated counts nothing.
    expect(await finalize(id, 'cancelled')).toMatchObject({ status: 'cancelled' });
  }
});

it('lets batches expire before and while they run', async () => {
  const [waiting, running] = [await world.create(['a']), await answered()];
  for (const id of [waiting, running]) {
    await claim(id, 'expired');
    expect(await finalize(id, 'expired')).toMatchObject({ status: 'expired' });
  }
  // A workflow that is started again finds nothing to do.
  await world.call(world.activities.openBatch, { batchId: waiting });
});

it('looks twice for a batch without a row', async () => {
  for (let minute = 0; minute < 2; minute++) {
    await world.call(world.activities.openBatch, { batchId: 'batch_0' });
  }
});

it('cannot write the plan of a batch at first', async () => {
  const id = await world.create(['a', 'a', 'a']);
  const folder = join(world.folder, 'objects', 'batches', id);
  writeFileSync(folder, 'a file in the place of a folder');
  await expect(world.ingest(id)).rejects.toMatchObject({ type: 'object_store_failed' });
  rmSync(folder);
  await world.ingest(id);
  planned.add(id);
  await world.chunk(id, 'a');
  expect(await finalize(id)).toMatchObject({ status: 'completed' });
});

// Before the next sweep, which remembers for a minute that no row is lost.
it('removes nothing while a batch has no row', async () => {
  const record = batchRecordKey(`batch_${'0'.repeat(32)}`);
  await world.resources.store.putIfAbsent(record, Buffer.from('{}'));
  for (let sweep = 0; sweep < 2; sweep++) {
    const page = world.call(world.activities.sweepPage, { kind: 'files', afterSeq: 0 });
    expect(await page).toEqual({ removed: 0, nextSeq: null });
  }
  rmSync(join(world.folder, 'objects', record));
});

it('reconciles and sweeps', async () => {
  const [lost, silent] = [await open(), await open()];
  world.workflows.set(lost, 'missing');
  const page = { afterSeq: 0, dryRun: false, cycleStartedAtMs: Date.now() };
  expect(await world.call(world.activities.reconcilePage, page)).toMatchObject({ errors: 1 });
  await insertFile(world.database.pool, { deleted_at: 1, bytes_gone_at: null });
  await world.call(world.activities.sweepPage, { kind: 'files', afterSeq: 0 });
  await world.database.pool.query('delete from batches where id = any($1)', [[lost, silent]]);
});

/** An open batch whose workflow was started a day ago. */
function open(over: Record<string, unknown> = {}): Promise<string> {
  const long = Math.floor(Date.now() / 1000) - DAY_SEC;
  const started = new Date(long * 1000);
  return insertBatch(world.database.pool, {
    ...{ status: 'in_progress', created_at: long, workflow_started_at: started, ...over },
  });
}

it('waits for the route of a model that no worker can send', async () => {
  const { awaitRoute } = world.activities;
  await expect(world.call(awaitRoute, { model: 'nowhere' })).rejects.toThrow('nowhere');
});

it('finds what a killed worker left', async () => {
  const id = await open();
  await world.database.pool.query(
    `insert into chunk_progress (batch_id, safe_model, from_pos, to_pos, epoch, worker)
     values ($1, 'm', 0, 9, 1, $2)`,
    [id, `1@${hostname()}`],
  );
  const { resources, metrics } = world;
  const options = { ...resources, metrics, checkAgainMs: 0 };
  const held = await findHeld(options);
  await countLeftBehind(options, held, new AbortController().signal);
  await world.database.pool.query('delete from batches where id = $1', [id]);
});

it('takes over a changed API key at its second attempt', async () => {
  // Shown with 0 by the client that the worker opened.
  expect(await world.registry.metrics()).toContain(
    'credential_reloads_total{credential="temporal_api_key",result="failure"} 0',
  );
  // A file of its own: the client of the worker also looks at its file every ten seconds.
  const file = join(world.folder, 'own-key');
  writeFileSync(file, 'a key');
  const config = { ...world.config.temporal, api_key_file: file };
  let attempts = 0;
  const watch = watchCredentials({
    config,
    initial: readCredentials(config),
    everyMs: 1,
    observer: countReloads(world.metrics.credentialReloads, config),
    use: () => {
      if (++attempts === 1) throw new Error('the connection refused it');
    },
  });
  const next = join(world.folder, 'next-key');
  writeFileSync(next, 'another key');
  renameSync(next, file);
  await untilCounted('credential_reloads_total{credential="temporal_api_key",result="success"}', 1);
  watch.close();
});

it('watches dependencies, gateways and the event loop', async () => {
  const { resources, metrics } = world;
  const logger = { warn: () => undefined, info: () => undefined } as never;
  const watch = watchDependencies({
    ...{ checks: resources.checks, logger, up: metrics.dependencyUp },
  });
  const isAway = async () => !('dependency_up{dependency="temporal"}' in (await world.moved()));
  await until(isAway, 10_000, 'Temporal to be missed');
  await watch.close();
  const breaker = resources.registry.route('down')?.breaker;
  for (const seconds of [0, 1, 2, 3, 11]) {
    const nowMs = Date.now() + seconds * 1000;
    breaker?.onFailure({ lineId: `l${seconds}`, kind: 502, nowMs });
  }
  const end = watchEventLoopDelay(metrics.eventLoopDelay, 1);
  const isSeen = async () => 'event_loop_delay_seconds_count' in (await world.moved());
  await until(isSeen, 5_000, 'a delay');
  end();
});

it('gives batches back when it shuts down, and when its permits cannot be trusted', async () => {
  const [first, second] = [await ingested(['a']), await ingested(['a'])];
  world.drain.abort();
  expect(await world.chunk(first, 'a')).toMatchObject({ left: 'drain' });
  expect(await world.chunk(first, 'a')).toMatchObject({ left: 'drain' });
  const permit = await acquire(world.resources.dispatcher, { tenant: 't', batch: 'b', model: 'a' });
  permit.release();
  permit.release();
  expect(await world.chunk(second, 'a')).toMatchObject({ left: 'drain' });
});

/** Series whose exact value depends on timing: they only have to move. */
const INEXACT =
  /^(journal_flush_duration_seconds|event_loop_delay_seconds|progress_write_failures_total|file_storage_operations_total\{operation="(store|retrieve)",component="processor",status="success"\})/;

describe('after this run', () => {
  it('every series has the value that it must have', async () => {
    await untilCounted('batch_first_request_seconds_count', 7);
    await untilCounted('job_queue_wait_duration_seconds_count', 10);
    const all = await world.moved();
    const exact = Object.entries(all).filter(([name]) => !INEXACT.test(name));
    expect(Object.fromEntries(exact)).toEqual(EXPECTED);
    expect(during).toMatchObject(DURING);
  });

  it('every result, reason, cause and phase of the page has moved', async () => {
    const series = Object.keys(await world.moved()).join('\n');
    const page = readFileSync(join(packageRoot(), 'docs', 'metrics.md'), 'utf8');
    const results = [...page.matchAll(/^\| `(\w+)` \| `(\w+)` \| (?!gauge|counter)/gm)];
    expect(results).toHaveLength(11);
    for (const [, result, reason] of results) {
      expect(series).toContain(`{result="${result}",reason="${reason}"}`);
    }
    for (const label of ['cause', 'phase']) {
      const [, text = ''] = new RegExp(`^\`${label}\` is ([^]*?)\\.$`, 'm').exec(page) ?? [];
      const values = [...text.matchAll(/`(\w+)`/g)].map(([, value]) => value);
      expect(values.length).toBeGreaterThan(2);
      for (const value of values) expect(series).toContain(`{${label}="${value}"}`);
    }
  });

  it('no series is left that did not move', async () => {
    const moved = [...Object.keys(await world.moved()), ...Object.keys(during)];
    const names = new Set(moved.map((series) => series.replace(/(_count)?(\{.*)?$/, '')));
    const registered = world.registry.getMetricsAsArray().map(({ name }) => name);
    // Series of providers move in test/e2e/delegation.test.ts.
    const here = registered.filter((name) => !name.startsWith('provider_'));
    expect(here.filter((name) => !names.has(name))).toEqual([]);
  });
});

/** While one request is held and its model paused. */
const DURING = {
  active_workers: 1,
  processor_inflight_requests: 1,
  'model_inflight_requests{model="held"}': 1,
  'model_paused{model="held"}': 1,
  'model_concurrency_limit{model="held"}': 2,
};

/** Ends of batches, their times, and attempts that ended nothing. */
const BATCHES = {
  'jobs_processed_total{result="success",reason="none"}': 3,
  'jobs_processed_total{result="cancelled",reason="none"}': 3,
  'jobs_processed_total{result="failed",reason="invalid_input"}': 1,
  'jobs_processed_total{result="failed",reason="system_error"}': 1,
  'jobs_processed_total{result="expired",reason="expired_dequeue"}': 1,
  'jobs_processed_total{result="expired",reason="expired_execution"}': 1,
  'jobs_processed_total{result="skipped",reason="not_runnable_state"}': 1,
  'jobs_processed_total{result="skipped",reason="db_inconsistency"}': 1,
  'jobs_processed_total{result="re_enqueued",reason="none"}': 1,
  'jobs_processed_total{result="re_enqueued",reason="guard_shutdown"}': 1,
  'jobs_processed_total{result="re_enqueued",reason="db_transient"}': 1,
  'batch_cancellation_total{phase="queued"}': 1,
  'batch_cancellation_total{phase="in_progress"}': 1,
  'batch_cancellation_total{phase="finalizing"}': 1,
  'batch_job_e2e_latency_seconds_count{status="completed"}': 3,
  'batch_job_e2e_latency_seconds_count{status="cancelled"}': 3,
  'batch_job_e2e_latency_seconds_count{status="expired"}': 2,
  'batch_job_e2e_latency_seconds_count{status="failed"}': 2,
  // Two ended before their ingestion.
  'job_processing_duration_seconds_count{size_bucket="100"}': 8,
  // Ten files were read, one twice. One was refused.
  job_queue_wait_duration_seconds_count: 10,
  'plan_build_duration_seconds_count{size_bucket="100"}': 9,
  // Neither the refused one nor the two that the drain gave back.
  batch_first_request_seconds_count: 7,
};

/** Nine lines in the first batch, of which six needed a second try, and four batches of three lines. */
const REQUESTS = {
  'requests_settled_total{model="a"}': 21,
  'requests_settled_total{model="held"}': 2,
  'request_errors_by_model_total{model="a"}': 1,
  // Nine first tries, of which one was dropped unserved, six second ones, and twelve of the other batches.
  'model_request_execution_duration_seconds_count{model="a"}': 26,
  'model_request_execution_duration_seconds_count{model="held"}': 3,
  'model_request_execution_duration_seconds_count{model="down"}': 1,
  'model_request_queue_seconds_count{model="held"}': 1,
  'model_requests_dropped_total{model="a",code="shutting_down"}': 1,
  'model_request_retries_total{model="a"}': 6,
  'model_request_retries_total{model="held"}': 1,
  'model_request_retries_total{model="down"}': 1,
  'request_retries_by_cause_total{cause="rate_limited"}': 2,
  'request_retries_by_cause_total{cause="server_error"}': 1,
  'request_retries_by_cause_total{cause="client_status"}': 1,
  'request_retries_by_cause_total{cause="dropped"}': 1,
  'request_retries_by_cause_total{cause="timeout"}': 1,
  'request_retries_by_cause_total{cause="connect"}': 1,
  'request_retries_by_cause_total{cause="connection"}': 1,
  'model_route_waits_total{model="nowhere"}': 1,
  // Two and three tokens for each successful answer.
  'batch_request_prompt_tokens_total{model="a"}': 40,
  'batch_request_prompt_tokens_total{model="held"}': 4,
  'batch_request_generation_tokens_total{model="a"}': 60,
  'batch_request_generation_tokens_total{model="held"}': 6,
  // Input, and twice the output.
  'worker_service_tokens_total{tenant="t"}': 176,
  // It was 4, then halved, and grew by one for the first success.
  'model_concurrency_limit{model="held"}': 3,
};

const WORKER = {
  // 16 for steps of batches, and worker.exec_slots.
  total_workers: 21,
  processor_max_inflight_concurrency: 7,
  'chunk_duration_seconds_count{exit="done"}': 6,
  'chunk_duration_seconds_count{exit="time_slice"}': 1,
  'chunk_duration_seconds_count{exit="drain"}': 3,
  'gateway_breaker_open{gateway="down"}': 1,
  'dependency_up{dependency="postgres"}': 1,
  'dependency_up{dependency="object_store"}': 1,
  'file_storage_operations_total{operation="retrieve",component="processor",status="retry"}': 1,
  'file_storage_operations_total{operation="delete",component="garbage-collector",status="success"}': 1,
  'batch_startup_recovery_total{status="in_progress",action="resumed"}': 1,
  'batch_reconciler_orphans_recovered_total{action="resumed"}': 1,
  batch_reconciler_cycle_duration_seconds_count: 1,
  batch_reconciler_errors_total: 1,
  'batch_sweeper_removed_total{kind="files"}': 1,
  batch_sweeper_lost_rows_total: 2,
  'credential_reloads_total{credential="temporal_api_key",result="failure"}': 1,
  'credential_reloads_total{credential="temporal_api_key",result="success"}': 1,
};

const EXPECTED = { ...BATCHES, ...REQUESTS, ...WORKER };
