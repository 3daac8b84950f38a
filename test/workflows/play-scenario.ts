import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NoopSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { createBatchWorkflows } from '../../client/batch-workflows';
import { workflowInterceptorModules } from '../../workers/workflow-source';
import { BATCH_QUEUE, BATCH_WORKFLOW, EXEC_QUEUE } from '../../workflows/contract';
import { batchIdFromBytes } from '../../core/names/ids';
import { oncePerRun } from '../support/once-per-run';
import type { Scenario } from './scenarios';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
});

/** The workflows as they stand in the source, bundled once for all test files of a Jest run. */
export async function workflowBundle(): Promise<WorkflowBundle> {
  const shared = { name: 'workflow-bundle', start: bundleInto, patienceMs: BUNDLE_MS };
  bundle ??= oncePerRun(shared).then(({ codePath }) => ({ code: readFileSync(codePath, 'utf8') }));
  return bundle;
}

let bundle: Promise<WorkflowBundle> | null = null;

/** On a machine that others use too. */
const BUNDLE_MS = 60_000;

async function bundleInto(folder: string): Promise<{ codePath: string }> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(__dirname, '..', '..', 'workflows', 'index.ts'),
    workflowInterceptorModules: workflowInterceptorModules(),
  });
  const codePath = join(folder, 'workflows.js');
  writeFileSync(codePath, code);
  return { codePath };
}

/** The tracing interceptors as the product wires them, with nobody listening. */
export function tracingPlugin(): OpenTelemetryPlugin {
  return new OpenTelemetryPlugin({
    resource: resourceFromAttributes({}),
    spanProcessor: new NoopSpanProcessor(),
  });
}

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

export interface PlayedScenario {
  /** Of every run, in order: more than one after continue-as-new. */
  readonly histories: readonly History[];
  /** The workflow's result, or the error with which it failed. */
  readonly result: unknown;
  readonly error: unknown;
}

/** Runs one scenario to its end on a real server, with this process as its only worker. */
export async function playScenario(
  server: { address: string; namespace: string },
  scenario: Scenario,
): Promise<PlayedScenario> {
  const connection = await Connection.connect({ address: server.address });
  const native = await NativeConnection.connect({ address: server.address });
  const shared = {
    connection: native,
    namespace: server.namespace,
    identity: 'recorder',
    maxHeartbeatThrottleInterval: 200,
    plugins: [tracingPlugin()],
  };
  const { executeChunk, ...steps } = scenario.batch.activities();
  const workers = await Promise.all([
    Worker.create({
      ...shared,
      taskQueue: BATCH_QUEUE,
      workflowBundle: await workflowBundle(),
      activities: steps,
    }),
    Worker.create({ ...shared, taskQueue: EXEC_QUEUE, activities: { executeChunk } }),
  ]);
  const runs = workers.map((worker) => worker.run());
  try {
    const batchId = batchIdFromBytes(randomBytes(16));
    const client = new Client({ connection, namespace: server.namespace, identity: 'recorder' });
    const handle = await start(client, batchId, scenario);
    const ended = handle.result().then(
      (result: unknown) => ({ result, error: null }),
      (error: unknown) => ({ result: null, error }),
    );
    await scenario.drive?.(handle);
    const end = await ended;
    return { ...end, histories: await historiesOf(client, handle) };
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(runs);
    await native.close();
    await connection.close();
  }
}

async function start(client: Client, batchId: string, scenario: Scenario) {
  if (scenario.start !== undefined) {
    await createBatchWorkflows(client, { callTimeoutMs: 10_000 }).start({
      ...scenario.start,
      id: batchId,
    });
  }
  return client.workflow.start(BATCH_WORKFLOW, {
    workflowId: batchId,
    taskQueue: BATCH_QUEUE,
    args: [{ batchId, ...(scenario.resume === undefined ? {} : { resume: scenario.resume }) }],
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
}

/** Histories of all runs of a workflow, in order: more than one after continue-as-new. */
export async function historiesOf(
  client: Client,
  handle: WorkflowHandle & { readonly firstExecutionRunId: string },
): Promise<History[]> {
  const histories: History[] = [];
  let runId: string | null | undefined = handle.firstExecutionRunId;
  while (runId) {
    const history: History = await client.workflow
      .getHandle(handle.workflowId, runId)
      .fetchHistory();
    histories.push(history);
    runId =
      history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return histories;
}
