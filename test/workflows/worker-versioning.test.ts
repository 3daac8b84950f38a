import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, type Worker } from '@temporalio/worker';
import { createBatchWorkflows } from '../../client/batch-workflows';
import { batchIdFromBytes } from '../../core/names/ids';
import { configSchema } from '../../platform/config-schema';
import { createWorkers } from '../../workers/create-workers';
import type { WorkerActivities } from '../../workers/wiring';
import { patchOptions } from '../../workers/workflow-versions';
import { BATCH_QUEUE, EXEC_QUEUE } from '../../workflows/contract';
import { startTemporal, TEMPORAL_START_MS, type TestTemporal } from '../support/temporal';
import { until } from '../support/until';
import { FakeBatch } from './fake-batch';
import { tracingPlugin, workflowBundle } from './play-scenario';

const DEPLOYMENT = 'nightshift';
/** Values of Temporal's enums `TaskQueueType` and `RoutingConfigUpdateState`. */
const TASK_QUEUE_OF_WORKFLOWS = 1;
const UPDATE_IN_PROGRESS = 1;
let temporal: TestTemporal;
let connection: Connection;
let native: NativeConnection;
let client: Client;
let code: string;
const running: { workers: readonly Worker[]; runs: Promise<void>[] }[] = [];

beforeAll(async () => {
  temporal = await startTemporal();
  connection = await Connection.connect({ address: temporal.address });
  native = await NativeConnection.connect({ address: temporal.address });
  client = new Client({ connection, namespace: temporal.namespace });
  code = (await workflowBundle()).code;
}, TEMPORAL_START_MS);
afterAll(async () => {
  for (const { workers } of running) for (const worker of workers) worker.shutdown();
  await Promise.all(running.flatMap(({ runs }) => runs));
  await native?.close();
  await connection?.close();
});

interface Release {
  readonly buildId?: string;
  readonly inactivePatches?: readonly string[];
  /** Called by every chunk before it works. */
  readonly onChunk?: () => Promise<void>;
}

/** Runs the workers of a release, as a worker process creates them, for one batch. */
async function deploy({ buildId, inactivePatches = [], onChunk }: Release): Promise<void> {
  const batch = new FakeBatch().activities();
  const config = configSchema.parse({
    temporal: {
      inactive_patches: inactivePatches,
      ...(buildId === undefined
        ? {}
        : { worker_versioning: { deployment_name: DEPLOYMENT, build_id: buildId } }),
    },
  });
  const activities = {
    ...batch,
    executeChunk: async (input: Parameters<typeof batch.executeChunk>[0]) => {
      await onChunk?.();
      return batch.executeChunk(input);
    },
  };
  const workers = await createWorkers({
    connection: native,
    namespace: temporal.namespace,
    config,
    activities: activities as unknown as WorkerActivities,
    execQueues: [EXEC_QUEUE],
    delegateQueues: [],
    workflowBundle: { code },
    patches: patchOptions(config.temporal, code),
    plugins: [tracingPlugin()],
    drainBudgetMs: 1_000,
    identity: buildId ?? 'unversioned',
  });
  running.push({ workers, runs: workers.map((worker) => worker.run()) });
}

/** Repeats until the server knows the version, which a worker's first poll tells it. */
async function makeCurrent(buildId: string): Promise<void> {
  const { namespace } = temporal;
  const set = () =>
    client.workflowService.setWorkerDeploymentCurrentVersion({
      ...{ namespace, deploymentName: DEPLOYMENT, buildId, identity: 'test' },
      ignoreMissingTaskQueues: true,
    });
  await until(() => set().catch(() => null), 20_000, `version ${buildId} to be current`, 100);
  await until(() => isRouted(buildId), 20_000, `tasks to go to version ${buildId}`, 50);
}

/** Whether the server has told its task queues which version is current; it does so after its answer. */
async function isRouted(buildId: string): Promise<boolean> {
  const { namespace } = temporal;
  const [{ workerDeploymentInfo: deployment }, { versioningInfo: queue }] = await Promise.all([
    client.workflowService.describeWorkerDeployment({ namespace, deploymentName: DEPLOYMENT }),
    client.workflowService.describeTaskQueue({
      ...{ namespace, taskQueue: { name: BATCH_QUEUE } },
      taskQueueType: TASK_QUEUE_OF_WORKFLOWS,
    }),
  ]);
  return (
    Number(deployment?.routingConfigUpdateState) !== UPDATE_IN_PROGRESS &&
    queue?.currentDeploymentVersion?.buildId === buildId
  );
}

async function start(): Promise<string> {
  const id = batchIdFromBytes(randomBytes(16));
  const expiresAtSec = Math.floor(Date.now() / 1000) + 3600;
  const rest = { tenant: 'acme', endpoint: '/v1/chat/completions', inputFileId: 'file-1' };
  const workflows = createBatchWorkflows(client, { callTimeoutMs: 10_000 });
  await workflows.start({ id, expiresAtSec, ...rest });
  return id;
}

async function versionOf(id: string): Promise<string | null | undefined> {
  const { raw } = await client.workflow.getHandle(id).describe();
  return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
}

/** Ids of the patches that the workflow's history has a marker for. */
async function patchesOf(id: string): Promise<string[]> {
  const { events } = await client.workflow.getHandle(id).fetchHistory();
  return (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) => {
    if (marker?.markerName !== 'core_patch') return [];
    const data = marker.details?.['patch-data']?.payloads?.[0]?.data ?? new Uint8Array();
    return [(JSON.parse(Buffer.from(data).toString()) as { id: string }).id];
  });
}

it('moves an open batch to the version that becomes current, and new batches back at a rollback', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  let isSending = false;
  await deploy({ buildId: 'one', onChunk: () => ((isSending = true), held) });
  await makeCurrent('one');
  const first = await start();
  await until(() => isSending, 30_000, 'the first chunk', 50);
  expect(await versionOf(first)).toBe('one');

  await deploy({ buildId: 'two' });
  await makeCurrent('two');
  release();
  await client.workflow.getHandle(first).result();
  expect(await versionOf(first)).toBe('two');

  await makeCurrent('one');
  const second = await start();
  await client.workflow.getHandle(second).result();
  expect(await versionOf(second)).toBe('one');
}, 90_000);

it('leaves no trace of an inactive patch in the history of a new batch', async () => {
  const own = await startTemporal();
  const before = { temporal, client };
  temporal = own;
  client = new Client({ connection, namespace: own.namespace });
  await deploy({ inactivePatches: ['stop-ends-ingestion'] });
  const id = await start();
  await client.workflow.getHandle(id).result();
  const found = await patchesOf(id);
  expect(found).toContain('waits-at-the-server');
  expect(found).not.toContain('stop-ends-ingestion');
  ({ temporal, client } = before);
}, 60_000);

it('refuses an inactive patch that the workflow code does not have', () => {
  const { temporal: settings } = configSchema.parse({ temporal: { inactive_patches: ['typo'] } });
  expect(() => patchOptions(settings, code)).toThrow('this release has no patch typo');
});
