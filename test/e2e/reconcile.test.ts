import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { Client as Postgres } from 'pg';
import { SCHEDULES } from '../../client/schedules';
import { manifestKey } from '../../core/names/object-names';
import { BATCH_QUEUE, BATCH_WORKFLOW, MAINTENANCE_WORKFLOWS } from '../../workflows/contract';
import { ageBatches } from '../support/aged-rows';
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
import { PROCESSES } from '../support/variant';
import { runReconcile } from './reconcile-command';
import { strayRow } from './stray-row';

const LINES = 300;
const IN_FLIGHT = 20;
const LATENCY_MS = 100;
/** Answers within one flush interval of the journal, 0.2 s. */
const LAST_FLUSH = Math.ceil((IN_FLIGHT * 200) / LATENCY_MS);
/** Id of a workflow that starts before its row exists. */
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
  // Only the tests reconcile.
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

/** Every line is once in one of the files, and journalled answers were not sent again. */
async function expectWhole(
  id: string,
  status: string,
  mayResend = PROCESSES * (IN_FLIGHT + LAST_FLUSH),
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
  'a workflow whose row comes late is not treated as an orphan',
  async () => {
    const handle = await temporal.workflow.start(BATCH_WORKFLOW, {
      workflowId: EARLY_ID,
      taskQueue: BATCH_QUEUE,
      args: [{ batchId: EARLY_ID }],
    });
    expect(await reconcile()).toMatchObject({ exitCode: 0 });
    await strayRow({ stack, postgres }, { id: EARLY_ID, expiresInSec: 3600, isStarted: true });
    expect(await reconcile()).toMatchObject({ exitCode: 0 });
    const { runId, status } = await handle.describe();
    expect([runId, status.name]).toEqual([handle.firstExecutionRunId, 'RUNNING']);
    earlyRun = runId;
  },
  TEST_MS,
);

describe('a batch that lost its workflow', () => {
  it(
    'is delivered as failed with all its answers if the workflow was terminated',
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
      const recovered = await stack.metric('worker', 'batch_reconciler_orphans_recovered_total{');
      expect(recovered.filter((line) => !line.endsWith(' 0'))).toEqual([
        expect.stringMatching(/action="failed".* 1$/),
      ]);
    },
    TEST_MS,
  );

  it(
    'completes if the workflow was terminated after the manifest was written',
    async () => {
      const id = await startedBatch();
      // The terminal record waits for the lock. Its worker is dead before it gets it.
      await postgres.query('begin');
      await postgres.query('lock table files in share mode');
      await until(() => existsSync(objectPath(manifestKey(id))), 60_000, 'the manifest');
      await temporal.workflow.getHandle(id).terminate('by an operator');
      const worker = stack.pidOf('worker');
      for (const pid of stack.pidsOf('worker')) process.kill(pid, 'SIGKILL');
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
    'is delivered as cancelled if it was cancelled meanwhile',
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
    'expires or fails, depending on its window, if the workflow %s',
    async (_what, type, taskQueue) => {
      const lost = async (expiresInSec: number): Promise<string> => {
        const id = await strayRow({ stack, postgres }, { expiresInSec, isStarted: true });
        const handle = await temporal.workflow.start(type, {
          workflowId: id,
          taskQueue,
          // There is no such batch, so its delivery fails.
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
    'is started if it never was, and the row records the start',
    async () => {
      const id = await strayRow({ stack, postgres }, { expiresInSec: 3600 });
      await reconcile();
      expect((await untilTerminal(stack.client, id)).status).toBe('completed');
      expect((await rowOf(id))['workflow_started_at']).not.toBeNull();
    },
    TEST_MS,
  );
});

it(
  'a workflow that was reset in the UI resumes from the journal',
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
  'files of a batch that ended without them are delivered late, and its status stays',
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
  'a batch goes on after Temporal and PostgreSQL were down at the same time',
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

// The workflow looks for its row once a minute. The tests in between run while it waits.
it(
  'a workflow whose row came late goes on without help',
  async () => {
    expect((await untilTerminal(stack.client, EARLY_ID)).status).toBe('completed');
    const handle = temporal.workflow.getHandle(EARLY_ID);
    expect((await handle.describe()).runId).toBe(earlyRun);
  },
  TEST_MS,
);

describe('a Temporal server that lost its database', () => {
  it(
    'under running workers gets schedules and batches back, and journalled answers are not sent again',
    async () => {
      const id = await startedBatch();
      await ageBatches(postgres);
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
    'while no worker ran is recovered at the next start from the journal, which is counted',
    async () => {
      const id = await startedBatch();
      await until(() => journalled(id) > 0, 10_000, 'a first answer in the journal');
      await ageBatches(postgres);
      await disconnect();
      for (const pid of stack.pidsOf('worker')) process.kill(pid, 'SIGKILL');
      await stack.stop();
      removeTemporalDatabase();
      const lost = sentOf(id).length - journalled(id);
      stack = await stack.restart();
      await connect();
      await expectWhole(id, 'completed', lost);
      // A worker that died a moment ago is given 7 s to announce itself.
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
  return stack.objectPath(key);
}

function removeTemporalDatabase(): void {
  const folder = join(stack.dataDir, 'temporal');
  const files = readdirSync(folder).filter((file) => file.startsWith('temporal.db'));
  expect(files).not.toEqual([]);
  for (const file of files) rmSync(join(folder, file));
}

const journalled = (id: string): number => journalledAnswers(stack, id);

it('the sweep runs and removes nothing of all these batches', async () => {
  const handle = await temporal.workflow.start('sweepWorkflow', {
    workflowId: 'sweep-by-the-test',
    taskQueue: BATCH_QUEUE,
    args: [{}],
    workflowRunTimeout: '1m',
  });
  expect(await handle.result()).toMatchObject({ files: 0, batches: 0, scratch: 0 });
});
