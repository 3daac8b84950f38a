import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { NativeConnection } from '@temporalio/worker';
import { openClient } from '../../client/connection';
import { batchIdFromBytes } from '../../core/names/ids';
import { configSchema } from '../../platform/config-schema';
import { createLogger } from '../../platform/logger';
import { createWorkers } from '../../workers/create-workers';
import { openWorkerConnection } from '../../workers/temporal-connection';
import type { WorkerActivities } from '../../workers/wiring';
import { BATCH_QUEUE, BATCH_WORKFLOW, EXEC_QUEUE, modelQueue } from '../../workflows/contract';
import { NO_WAIT } from '../support/no-wait';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch } from '../workflows/fake-batch';
import { tracingPlugin, workflowBundle } from '../workflows/play-scenario';

const logger = createLogger({ level: 'error', format: 'json' }, 'test');
const QUEUES = [EXEC_QUEUE, modelQueue('b')];
let temporal: TestTemporal;

beforeAll(async () => {
  temporal = await startTemporal();
  await workflowBundle();
}, TEMPORAL_START_MS);
afterAll(() => temporal?.stop());

interface Process {
  readonly queues: number;
  stop(): Promise<void>;
}

/** The Temporal workers of one process with these settings of `worker`. */
async function startProcess(
  connection: NativeConnection,
  batch: FakeBatch,
  worker: object,
): Promise<Process> {
  const workers = await createWorkers({
    connection,
    namespace: temporal.namespace,
    config: configSchema.parse({ worker }),
    activities: batch.activities() as unknown as WorkerActivities,
    execQueues: QUEUES,
    delegateQueues: [],
    workflowBundle: await workflowBundle(),
    plugins: [tracingPlugin()],
    drainBudgetMs: 1_000,
    identity: 'test',
  });
  const runs = Promise.all(workers.map((one) => one.run()));
  const stop = async (): Promise<void> => {
    for (const one of workers) one.shutdown();
    await runs;
  };
  return { queues: workers.length, stop };
}

/** Each model has a queue of its own, and enough lines for four lanes. */
function twoModels(onChunk: () => Promise<void>): FakeBatch {
  let asked = 0;
  return new FakeBatch({
    models: [
      { model: 'a', entries: 2_000 },
      { model: 'b', entries: 2_000 },
    ],
    get queue() {
      return QUEUES[asked++ % 2] ?? EXEC_QUEUE;
    },
    onChunk: async () => void (await onChunk()),
  });
}

it('lets one process run workflows and another one chunks, with its slots for all queues together', async () => {
  const { address, namespace } = temporal;
  const config = configSchema.parse({ temporal: { address, namespace } }).temporal;
  const running = { now: 0, most: 0 };
  const batch = twoModels(async () => {
    running.most = Math.max(running.most, ++running.now);
    await delay(20);
    running.now--;
  });
  const connection = await openWorkerConnection({ config, logger, wait: NO_WAIT });
  const client = openClient(config);
  const processes = [await startProcess(connection.first, batch, { roles: ['batch'] })];
  try {
    const workflowId = batchIdFromBytes(randomBytes(16));
    const started = { workflowId, taskQueue: BATCH_QUEUE, args: [{ batchId: workflowId }] };
    const handle = await client.workflow.start(BATCH_WORKFLOW, started);
    await until(() => batch.transitions.includes('in_progress'), 20_000, 'the end of ingestion');
    expect(batch.chunks).toHaveLength(0);
    processes.push(await startProcess(connection.first, batch, { roles: ['exec'], exec_slots: 2 }));
    await expect(handle.result()).resolves.toMatchObject({ status: 'completed', total: 4_000 });
    expect(processes.map(({ queues }) => queues)).toEqual([1, QUEUES.length]);
    // Two slots, and at most one chunk more for the second queue.
    expect(running.most).toBeGreaterThanOrEqual(2);
    expect(running.most).toBeLessThanOrEqual(3);
  } finally {
    for (const one of processes) await one.stop();
    await client.connection.close();
    await connection.close();
  }
}, 60_000);
