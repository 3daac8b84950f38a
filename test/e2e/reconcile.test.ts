import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { Client as Postgres } from 'pg';
import { SCHEDULES } from '../../client/schedules';
import { manifestKey } from '../../core/names/object-names';
import { BATCH_QUEUE, BATCH_WORKFLOW, MAINTENANCE_WORKFLOWS } from '../../workflows/contract';
import { journalledAnswers } from '../support/journal-files';
import type { RecordingBackend, Seen } from '../support/recording-backend';
import { startRecordingBackend } from '../support/recording-backend';
import type { TestStack } from '../support/stack';
import {
  chatLines,
  resultLines,
  STACK_START_MS,
  startStack,
  submit,
  untilTerminal,
} from '../support/stack';
import { until } from '../support/until';
import { runReconcile } from './reconcile-command';

const LINES = 300;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;
/** Answers that the backend wrote within the last flush of the journal, 0.2 s. */
const LAST_FLUSH = Math.ceil((IN_FLIGHT * 200) / LATENCY_MS);
/** Of a workflow that is there before its row. */
const EARLY_ID = `batch_${'0badcafe'.repeat(4)}`;
const TEST_MS = 180_000;

let backend: RecordingBackend;
let stack: TestStack;
let temporal: Client;
let postgres: Postgres;
let earlyRun = '';

beforeAll(async () => {
  backend = await startRecordingBackend(LATENCY_MS);
  stack = await startStack({
    config: {
      global_inference_gateway: {
        url: backend.url,
        request_timeout: '10s',
        initial_backoff: '50ms',
        max_backoff: '500ms',
      },
      batch: { cancel_grace: '2s' },
      concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
      worker: { heartbeat_timeout: '3s' },
    },
  });
  await connect();
  // Whatever is reconciled here is reconciled by hand.
  const schedule = temporal.schedule.getHandle(SCHEDULES.reconcile);
  const isPaused = () =>
    schedule.pause().then(
      () => true,
      () => false,
    );
  await until(isPaused, 20_000, 'the schedule');
}, STACK_START_MS);
afterAll(async () => {
  await disconnect();
  await stack?.stop();
  stack?.remove();
  await backend?.close();
}, 60_000);
beforeEach(() => {
  backend.seen.length = 0;
  backend.latencyMs = LATENCY_MS;
});

async function connect(): Promise<void> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  temporal = new Client({ connection });
  const settings = JSON.parse(readFileSync(stack.configFile, 'utf8')) as {
    postgres: { url: string };
  };
  postgres = new Postgres({ connectionString: settings.postgres.url });
  await postgres.connect();
}

async function disconnect(): Promise<void> {
  await temporal?.connection.close();
  await postgres?.end();
}

const reconcile = (...flags: string[]) => runReconcile(stack.configFile, ...flags);

async function rowOf(id: string): Promise<Record<string, unknown>> {
  const { rows } = await postgres.query<Record<string, unknown>>(
    'select * from batches where id = $1',
    [id],
  );
  return rows[0] ?? {};
}

/** Requests of a batch. */
function sentOf(id: string): Seen[] {
  const hex = id.slice('batch_'.length);
  return backend.seen.filter(({ requestId }) => requestId.includes(hex));
}

async function startedBatch(share = 0.25): Promise<string> {
  const { id } = await submit(stack.client, chatLines(LINES));
  await until(() => sentOf(id).length >= LINES * share, 60_000, 'a part of the batch');
  return id;
}

/** Every line once over both files; what was journalled was sent once. */
async function expectWhole(
  id: string,
  status: string,
  mayResend = IN_FLIGHT + LAST_FLUSH,
): Promise<void> {
  const done = await untilTerminal(stack.client, id);
  expect(done.status).toBe(status);
  const output = await resultLines(stack.client, done.output_file_id);
  const errors = await resultLines(stack.client, done.error_file_id);
  const ids = [...output, ...errors].map((line) => line.custom_id);
  expect(ids.sort()).toEqual(Array.from({ length: LINES }, (_, i) => `c-${i}`).sort());
  expect(done.request_counts).toEqual({ total: LINES, completed: output.length, failed: 0 });
  const sent = sentOf(id).map(({ requestId }) => requestId);
  expect(sent.length - new Set(sent).size).toBeLessThanOrEqual(mayResend);
  if (status === 'completed') expect(output).toHaveLength(LINES);
  else
    expect(new Set(errors.map((line) => line.error?.code))).toEqual(new Set([`batch_${status}`]));
}

it(
  'a workflow whose row comes late is no orphan',
  async () => {
    const handle = await temporal.workflow.start(BATCH_WORKFLOW, {
      workflowId: EARLY_ID,
      taskQueue: BATCH_QUEUE,
      args: [{ batchId: EARLY_ID }],
    });
    expect(await reconcile()).toMatchObject({ exitCode: 0 });
    await strayRow({ id: EARLY_ID, expiresInSec: 3600, isStarted: true });
    expect(await reconcile()).toMatchObject({ exitCode: 0 });
    const { runId, status } = await handle.describe();
    expect([runId, status.name]).toEqual([handle.firstExecutionRunId, 'RUNNING']);
    earlyRun = runId;
  },
  TEST_MS,
);

describe('a batch that lost its workflow', () => {
  it(
    'is delivered as failed when it was terminated: every answer that was paid for is in',
    async () => {
      const id = await startedBatch();
      await temporal.workflow.getHandle(id).terminate('by an operator');
      const dry = await reconcile('--dry-run');
      expect(dry.stdout).toMatch(new RegExp(`${id}\\s+in_progress\\s+closed\\s+failed`));
      expect(await rowOf(id)).toMatchObject({ status: 'in_progress', stop_cause: null });
      const wet = await reconcile();
      expect(wet).toMatchObject({ exitCode: 0 });
      const answered = sentOf(id).filter((seen) => seen.answered).length;
      await expectWhole(id, 'failed');
      const done = await stack.client.batches.retrieve(id);
      expect(done.request_counts?.completed).toBeGreaterThanOrEqual(answered - IN_FLIGHT);
      expect(done.errors?.data?.[0]).toMatchObject({ code: 'system_error' });
      expect(await stack.metric('worker', 'batch_reconciler_orphans_recovered_total{')).toEqual([
        expect.stringMatching(/action="failed".* 1$/),
      ]);
    },
    TEST_MS,
  );

  it(
    'completes when it was terminated with its manifest there',
    async () => {
      const id = await startedBatch();
      // The terminal record waits for the lock; its worker is dead when it gets it.
      await postgres.query('begin');
      await postgres.query('lock table files in share mode');
      await until(() => existsSync(objectPath(manifestKey(id))), 60_000, 'the manifest');
      await temporal.workflow.getHandle(id).terminate('by an operator');
      const worker = stack.pidOf('worker');
      process.kill(worker, 'SIGKILL');
      await postgres.query('rollback');
      const sent = sentOf(id).length;
      await until(
        () => stack.pidNow('worker') !== worker && stack.pidNow('worker'),
        60_000,
        'a new worker',
      );
      await reconcile();
      await expectWhole(id, 'completed');
      expect(sentOf(id)).toHaveLength(sent);
    },
    TEST_MS,
  );

  it(
    'is delivered as cancelled when its cancel came while it had none',
    async () => {
      const id = await startedBatch();
      await temporal.workflow.getHandle(id).terminate('by an operator');
      await stack.client.batches.cancel(id);
      await reconcile();
      await expectWhole(id, 'cancelled');
    },
    TEST_MS,
  );

  it.each([
    ['timed out', BATCH_WORKFLOW, 'nobody'],
    ['failed', MAINTENANCE_WORKFLOWS.deliverLate, BATCH_QUEUE],
  ])(
    'ends by its window when the workflow of its id %s',
    async (_what, type, taskQueue) => {
      const lost = async (expiresInSec: number): Promise<string> => {
        const id = await strayRow({ expiresInSec, isStarted: true });
        const handle = await temporal.workflow.start(type, {
          workflowId: id,
          taskQueue,
          // There is no such batch: a delivery of it fails.
          args: [{ batchId: `batch_${'0'.repeat(32)}` }],
          workflowRunTimeout: taskQueue === BATCH_QUEUE ? '1m' : '1s',
        });
        await expect(handle.result()).rejects.toThrow();
        await reconcile();
        const { status, output_file_id } = await untilTerminal(stack.client, id);
        expect(output_file_id).toBeNull();
        expect(sentOf(id)).toEqual([]);
        return status;
      };
      expect(await lost(-1)).toBe('expired');
      expect(await lost(3600)).toBe('failed');
    },
    TEST_MS,
  );

  it(
    'is started when it never was, and the row says so',
    async () => {
      const id = await strayRow({ expiresInSec: 3600 });
      await reconcile();
      expect((await untilTerminal(stack.client, id)).status).toBe('completed');
      expect((await rowOf(id))['workflow_started_at']).not.toBeNull();
    },
    TEST_MS,
  );
});

/**
 * A row like one whose creator died before it started the workflow: ten minutes old, with a file. The API
 * looks after such rows too, unless they are started by their own account.
 */
async function strayRow(row: {
  expiresInSec: number;
  isStarted?: boolean;
  id?: string;
}): Promise<string> {
  const template = await submit(stack.client, chatLines(3));
  await untilTerminal(stack.client, template.id);
  const reversed = template.id.slice('batch_'.length).split('').reverse().join('');
  const { expiresInSec, isStarted = false, id = `batch_${reversed}` } = row;
  await postgres.query(
    `insert into batches (id, tenant, endpoint, input_file_id, input_object_key, input_bytes,
       completion_window, created_at, expires_at, workflow_started_at)
     select $1, tenant, endpoint, input_file_id, input_object_key, input_bytes, completion_window,
       created_at - 600, extract(epoch from now())::bigint + $3, case when $4 then now() end
     from batches where id = $2`,
    [id, template.id, expiresInSec, isStarted],
  );
  return id;
}

it(
  'a workflow that was reset in the UI goes on from the journal',
  async () => {
    const id = await startedBatch(0.5);
    const history = await temporal.workflow.getHandle(id).fetchHistory();
    const first = history.events?.find((event) => event.workflowTaskCompletedEventAttributes);
    await temporal.workflowService.resetWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: id },
      reason: 'by an operator',
      workflowTaskFinishEventId: first?.eventId ?? null,
      requestId: `reset-${id}`,
    });
    await reconcile();
    await expectWhole(id, 'completed');
  },
  TEST_MS,
);

it(
  'files of a batch whose finalization was given up are delivered late; its status stays',
  async () => {
    const id = await startedBatch();
    await stack.client.batches.cancel(id);
    await untilTerminal(stack.client, id);
    const files = (await rowOf(id))['output_file_id'];
    await postgres.query(
      `update batches set output_file_id = null, error_file_id = null, completed = 0 where id = $1`,
      [id],
    );
    await postgres.query('delete from files where batch_id = $1', [id]);
    const late = await reconcile('--finalize', id);
    expect(late).toMatchObject({ exitCode: 0 });
    expect(late.stdout).toContain(String(files));
    await expectWhole(id, 'cancelled');
    expect((await reconcile('--finalize', id)).stderr).toContain('already has its result files');
    const refused = await reconcile('--finalize', `batch_${'9'.repeat(32)}`);
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(refused.stderr).toContain('there is no batch');
  },
  TEST_MS,
);

it(
  'Temporal and Postgres away at once: the batch goes on when they are back',
  async () => {
    const id = await startedBatch();
    await disconnect();
    for (const part of ['temporal', 'postgres']) process.kill(stack.pidOf(part), 'SIGKILL');
    await expectWhole(id, 'completed');
    await connect();
    expect(await reconcile('--dry-run')).toMatchObject({ exitCode: 0, stdout: '' });
  },
  TEST_MS,
);

// The others run while it waits for the next of its looks, of which there is one a minute.
it(
  'a workflow whose row came late goes on by itself',
  async () => {
    expect((await untilTerminal(stack.client, EARLY_ID)).status).toBe('completed');
    const handle = temporal.workflow.getHandle(EARLY_ID);
    expect((await handle.describe()).runId).toBe(earlyRun);
  },
  TEST_MS,
);

describe('Temporal with an empty database', () => {
  it(
    'under running workers: schedules and batches are back, and nothing journalled is paid twice',
    async () => {
      const id = await startedBatch();
      const pid = stack.pidOf('temporal');
      removeTemporalDatabase();
      process.kill(pid, 'SIGKILL');
      await until(
        () => stack.pidNow('temporal') !== pid && stack.pidNow('temporal'),
        60_000,
        'a new server',
      );
      await expectWhole(id, 'completed');
      const schedule = temporal.schedule.getHandle(SCHEDULES.reconcile);
      expect((await schedule.describe()).action).toMatchObject({
        workflowType: 'reconcileWorkflow',
      });
    },
    TEST_MS,
  );

  it(
    'and no worker either: the next start resumes from the journal, and counts it',
    async () => {
      const id = await startedBatch();
      await until(() => journalled(id) > 0, 10_000, 'a first answer in the journal');
      await disconnect();
      process.kill(stack.pidOf('worker'), 'SIGKILL');
      await stack.stop();
      removeTemporalDatabase();
      const lost = sentOf(id).length - journalled(id);
      stack = await stack.restart();
      await connect();
      await expectWhole(id, 'completed', lost);
      // A worker that died a moment ago is looked at a second time, 4 s later.
      const counted = await until(
        async () => {
          const lines = await stack.metric('worker', 'batch_startup_recovery_total{');
          return lines.length > 0 ? lines : null;
        },
        15_000,
        'the resumed batch to be counted',
      );
      expect(counted).toEqual([
        expect.stringMatching(/status="in_progress".*action="resumed".* 1$/),
      ]);
    },
    TEST_MS,
  );
});

function objectPath(key: string): string {
  return join(stack.dataDir, 'objects', 'objects', key);
}

function removeTemporalDatabase(): void {
  const folder = join(stack.dataDir, 'temporal');
  const files = readdirSync(folder).filter((file) => file.startsWith('temporal.db'));
  expect(files).not.toEqual([]);
  for (const file of files) rmSync(join(folder, file));
}

const journalled = (id: string): number => journalledAnswers(stack.dataDir, id);

it('the sweep has left all of this alone, and runs', async () => {
  const handle = await temporal.workflow.start('sweepWorkflow', {
    workflowId: 'sweep-by-the-test',
    taskQueue: BATCH_QUEUE,
    args: [{}],
    workflowRunTimeout: '1m',
  });
  expect(await handle.result()).toMatchObject({ files: 0, batches: 0, scratch: 0 });
});
