import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
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
import type { BatchActivities, SmallBatchActivities } from '../../activities/contract';
import type { DelegateActivities } from '../../activities/delegate/contract';
import { OpenTelemetryPlugin } from '@temporalio/interceptors-opentelemetry-v2';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { NoopSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { createBatchWorkflows } from '../../client/batch-workflows';
import { bundleSource } from '../../workers/workflow-source';
import { BATCH_QUEUE, BATCH_WORKFLOW, EXEC_QUEUE } from '../../workflows/contract';
import { batchIdFromBytes } from '../../core/names/ids';
import { oncePerRun } from '../support/once-per-run';
import { startTemporal } from '../support/temporal';
import { FakeBatch } from './fake-batch';
import type { Scenario } from './scenarios';

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
});

/** The bundle of the present workflow sources, built once for all test files of a Jest run. */
export async function workflowBundle(): Promise<WorkflowBundle> {
  const shared = { name: 'workflow-bundle', start: bundleInto, startLimitMs: BUNDLE_MS };
  bundle ??= oncePerRun(shared).then(({ codePath }) => ({ code: readFileSync(codePath, 'utf8') }));
  return bundle;
}

let bundle: Promise<WorkflowBundle> | null = null;

/** Long enough for a busy machine. */
const BUNDLE_MS = 60_000;

async function bundleInto(folder: string): Promise<{ codePath: string }> {
  const { code } = await bundleWorkflowCode(
    bundleSource(join(__dirname, '..', '..', 'workflows', 'index.ts')),
  );
  const codePath = join(folder, 'workflows.js');
  writeFileSync(codePath, code);
  return { codePath };
}

/** The tracing interceptors as the product installs them, without an exporter. */
export function tracingPlugin(): OpenTelemetryPlugin {
  return new OpenTelemetryPlugin({
    resource: resourceFromAttributes({}),
    spanProcessor: new NoopSpanProcessor(),
  });
}

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

export interface PlayedScenario {
  /** Histories of all runs in order: more than one after continue-as-new. */
  readonly histories: readonly History[];
  /** The workflow's result, or the error with which it failed. */
  readonly result: unknown;
  readonly error: unknown;
}

/** Plays scenarios on a real server, with this process as the only worker. */
export interface ScenarioPlayer {
  /** Runs a scenario to its end. */
  play(scenario: Scenario): Promise<PlayedScenario>;
  close(): Promise<void>;
}

/**
 * Connects to a new namespace of the shared server and starts a worker for all scenarios of a test file.
 * Activities find the batch they belong to by the id of their workflow.
 */
export async function startScenarioPlayer(): Promise<ScenarioPlayer> {
  const server = await startTemporal();
  const { namespace } = server;
  const native = await NativeConnection.connect({ address: server.address });
  const connection = await Connection.connect({ address: server.address });
  const client = new Client({ connection, namespace, identity: 'recorder' });
  const playing = new Map<string, Activities>();
  const workers = await startWorkers({ connection: native, namespace }, playing);
  return {
    play: async (scenario) => {
      const batchId = batchIdFromBytes(randomBytes(16));
      playing.set(batchId, scenario.batch.activities());
      const handle = await start(client, batchId, scenario);
      const ended = handle.result().then(
        (result: unknown) => ({ result, error: null }),
        (error: unknown) => ({ result: null, error }),
      );
      await scenario.drive?.(handle);
      const end = await ended;
      return { ...end, histories: await historiesOf(client, handle) };
    },
    close: async () => {
      await workers.stop();
      await native.close();
      await connection.close();
      await server.stop();
    },
  };
}

async function startWorkers(
  server: { connection: NativeConnection; namespace: string },
  playing: ReadonlyMap<string, Activities>,
): Promise<{ stop(): Promise<void> }> {
  const shared = {
    ...server,
    identity: 'recorder',
    maxHeartbeatThrottleInterval: 200,
    plugins: [tracingPlugin()],
  };
  const { executeChunk, runSmallBatch, ...steps } = activitiesOf(playing);
  const workers = await Promise.all([
    Worker.create({
      ...shared,
      taskQueue: BATCH_QUEUE,
      workflowBundle: await workflowBundle(),
      activities: steps,
    }),
    Worker.create({
      ...shared,
      taskQueue: EXEC_QUEUE,
      activities: { executeChunk, runSmallBatch },
    }),
  ]);
  const runs = workers.map((worker) => worker.run());
  return {
    stop: async () => {
      for (const worker of workers) worker.shutdown();
      await Promise.all(runs);
    },
  };
}

type Activities = BatchActivities & DelegateActivities & SmallBatchActivities;

/** Activities that delegate to the batch whose workflow called them. */
function activitiesOf(playing: ReadonlyMap<string, Activities>): Activities {
  const names = Object.keys(new FakeBatch().activities()) as (keyof Activities)[];
  const dispatched = names.map((name) => [
    name,
    (input: never): Promise<unknown> => {
      const batchId = Context.current().info.workflowExecution?.workflowId ?? '';
      const own = playing.get(batchId);
      if (own === undefined) throw new Error(`no scenario is played with ${batchId}`);
      return own[name](input);
    },
  ]);
  return Object.fromEntries(dispatched) as Activities;
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

/** Names of the activities that a workflow has scheduled, local ones aside, in order. */
export function activitiesIn(histories: readonly History[]): (string | null | undefined)[] {
  const events = histories.flatMap((history) => history.events ?? []);
  const scheduled = events.flatMap((event) => event.activityTaskScheduledEventAttributes ?? []);
  return scheduled.map(({ activityType }) => activityType?.name);
}
