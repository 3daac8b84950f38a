import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { SCHEDULES } from '../../../client/schedules';
import { packageRoot } from '../../../platform/package-root';
import { BATCH_QUEUE } from '../../../workflows/contract';
import { chatLines, submit, untilTerminal } from '../../support/stack';
import { until } from '../../support/until';
import { startRecordedStack, type RecordedStack } from './recorded-stack';

const run = promisify(execFile);
const DAY_SEC = 86_400;

it('records a stack whose workflows and workers are lost', async () => {
  const recorded = await startRecordedStack((gateway) => ({ model_gateways: { m: gateway } }));
  await recorded.phase('healthy', 20);
  await loseRow(recorded);
  await loseWorkers(recorded);
  await loseBatches(recorded);
  await recorded.finish('lost');
});

/**
 * A row that a restored database does not have, until `nightshift restore` inserts it. The schedule sweeps at each
 * full ten minutes. If it does so in the minute before, that sweep remembers that no row is lost: record again.
 */
async function loseRow(recorded: RecordedStack): Promise<void> {
  const { stack, temporal, database } = recorded.proxied;
  const sweep = temporal.schedule.getHandle(SCHEDULES.sweep);
  await recorded.phase('a batch has lost its row', 6, async () => {
    const { id } = await submit(stack.client, chatLines(3));
    await untilTerminal(stack.client, id);
    await database.pool.query('delete from batches where id = $1', [id]);
    await sweep.trigger();
  });
  await recorded.phase('its row is restored', 6, async () => {
    const command = path.join(packageRoot(), 'cli', 'nightshift.js');
    await run(process.execPath, [command, 'restore', '--config', stack.configFile]);
    await sweep.trigger();
  });
}

/** Workflow tasks, maintenance and gateways without a worker that can take them. */
async function loseWorkers(recorded: RecordedStack): Promise<void> {
  const { stack, temporal } = recorded.proxied;
  const schedule = temporal.schedule.getHandle(SCHEDULES.reconcile);
  const stuck = Array.from({ length: 3 }, () => randomUUID());
  const workflowType = 'batchWorkflowOfALaterRelease';
  const start = (workflowId: string): Promise<unknown> =>
    temporal.workflow.start(workflowType, { workflowId, taskQueue: BATCH_QUEUE });
  await recorded.phase('three workflows of a later release', 24, () =>
    Promise.all(stuck.map(start)),
  );
  await recorded.phase('these workflows are terminated', 32, () =>
    Promise.all(stuck.map((id) => temporal.workflow.getHandle(id).terminate())),
  );
  // The API reads the gauges of open batches once in ten seconds, so they reach a rule up to ten steps late.
  await recorded.phase('a batch was created two hours ago and did not begin', 18, async () => {
    await strayRow(recorded, { ageSec: 7_200, windowSec: DAY_SEC, id: 'held' });
    recorded.reconcile = false;
    await schedule.pause();
  });
  await recorded.phase('and reconcile does not run', 12);
  await recorded.phase('reconcile runs again', 18, async () => {
    await schedule.unpause();
    recorded.reconcile = true;
  });
  await recorded.phase('the only worker with a gateway for a model is gone', 11, async () => {
    await announceAsGone(recorded, 'ghost');
    await submit(
      stack.client,
      chatLines(3, () => 'ghost'),
    );
  });
}

/** Batches that end as they should not. */
async function loseBatches(recorded: RecordedStack): Promise<void> {
  const { backend, proxied } = recorded;
  const { stack, temporal } = proxied;
  const statusOf = async (id: string) => (await stack.client.batches.retrieve(id)).status;
  await recorded.phase('four batches expire', 14, async () => {
    backend.latencyMs = 10_000;
    const ids = await Promise.all(
      Array.from({ length: 4 }, async () => (await submit(stack.client, chatLines(3), '2s')).id),
    );
    for (const id of ids) await untilTerminal(stack.client, id);
    backend.latencyMs = 50;
  });
  await recorded.phase('five workflows are terminated', 10, async () => {
    recorded.reconcile = false;
    backend.latencyMs = 5_000;
    for (let i = 0; i < 5; i++) {
      const { id } = await submit(stack.client, chatLines(3));
      await until(async () => (await statusOf(id)) === 'in_progress', 20_000, 'the beginning');
      await temporal.workflow.getHandle(id).terminate('by an operator');
    }
    backend.latencyMs = 50;
    recorded.reconcile = true;
  });
  await recorded.phase('a batch is open two days after its end', 18, () =>
    strayRow(recorded, { ageSec: 3 * DAY_SEC, windowSec: 3_600, id: 'late' }),
  );
}

/** A row whose workflow was started and is unknown to Temporal. */
async function strayRow(
  { proxied }: RecordedStack,
  row: { ageSec: number; windowSec: number; id: string },
): Promise<void> {
  const template = await submit(proxied.stack.client, chatLines(3));
  await untilTerminal(proxied.stack.client, template.id);
  await proxied.database.pool.query(
    `insert into batches (id, tenant, endpoint, input_file_id, input_object_key, input_bytes,
       completion_window, created_at, expires_at, workflow_started_at)
     select $1, tenant, endpoint, input_file_id, input_object_key, input_bytes, completion_window,
       extract(epoch from now())::bigint - $3, extract(epoch from now())::bigint - $3 + $4, now()
     from batches where id = $2`,
    [`batch_${row.id.padEnd(32, '0')}`, template.id, row.ageSec, row.windowSec],
  );
}

/** The announcement of a worker that was last seen a minute ago. */
async function announceAsGone({ proxied }: RecordedStack, model: string): Promise<void> {
  await proxied.database.pool.query(
    `insert into worker_routes (worker, routes, seen_at) values ('gone', $1, now() - interval '1 minute')`,
    [JSON.stringify({ global: null, models: { [model]: 20_000 } })],
  );
}
