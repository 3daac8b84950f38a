import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { ReconcileActivities, ReconcilePageInput } from '../../activities/reconcile/contract';
import type { SweepActivities, SweepPageInput } from '../../activities/sweep/contract';
import { BATCH_QUEUE, MAINTENANCE_WORKFLOWS } from '../../workflows/contract';
import type { PlayedScenario } from './play-scenario';
import { historiesOf, tracingPlugin, workflowBundle } from './play-scenario';

/** A maintenance workflow with its input and the number of pages that its activities have. */
export interface MaintenanceScenario {
  readonly workflow: string;
  readonly input: unknown;
  /** How many pages of batches reconcile finds. */
  readonly pages?: number;
  /** How many pages each kind of the sweep has. */
  readonly sweepPages?: number;
}

/** The inputs of the activities, in order. */
export interface PlayedMaintenance extends PlayedScenario {
  readonly reconciled: readonly ReconcilePageInput[];
  readonly swept: readonly SweepPageInput[];
}

/** Courses of the maintenance workflows, played by their tests and recorded once for the replay tests. */
export const MAINTENANCE_SCENARIOS: Readonly<Record<string, MaintenanceScenario>> = {
  reconcile: { workflow: MAINTENANCE_WORKFLOWS.reconcile, input: {}, pages: 3 },
  'reconcile-continued': {
    workflow: MAINTENANCE_WORKFLOWS.reconcile,
    input: { dryRun: true },
    pages: 60,
  },
  sweep: { workflow: MAINTENANCE_WORKFLOWS.sweep, input: {}, sweepPages: 1 },
  'sweep-continued': { workflow: MAINTENANCE_WORKFLOWS.sweep, input: {}, sweepPages: 9 },
  'deliver-late': { workflow: MAINTENANCE_WORKFLOWS.deliverLate, input: { batchId: 'batch_1' } },
};

/** Runs one scenario to its end on a real server, with this process as its only worker. */
export async function playMaintenance(
  server: { address: string; namespace: string },
  scenario: MaintenanceScenario,
): Promise<PlayedMaintenance> {
  const connection = await Connection.connect({ address: server.address });
  const native = await NativeConnection.connect({ address: server.address });
  const reconciled: ReconcilePageInput[] = [];
  const swept: SweepPageInput[] = [];
  const worker = await Worker.create({
    connection: native,
    namespace: server.namespace,
    identity: 'recorder',
    plugins: [tracingPlugin()],
    taskQueue: BATCH_QUEUE,
    workflowBundle: await workflowBundle(),
    activities: activities(scenario, { reconciled, swept }),
  });
  const running = worker.run();
  try {
    const client = new Client({ connection, namespace: server.namespace, identity: 'recorder' });
    const handle = await client.workflow.start(scenario.workflow, {
      workflowId: `maintenance-${randomBytes(6).toString('hex')}`,
      taskQueue: BATCH_QUEUE,
      args: [scenario.input],
    });
    const result: unknown = await handle.result();
    const histories = await historiesOf(client, handle);
    return { result, error: null, histories, reconciled, swept };
  } finally {
    worker.shutdown();
    await running;
    await native.close();
    await connection.close();
  }
}

function activities(
  { pages = 1, sweepPages = 1 }: MaintenanceScenario,
  asked: { reconciled: ReconcilePageInput[]; swept: SweepPageInput[] },
): ReconcileActivities & SweepActivities {
  return {
    reconcilePage: (input) => {
      asked.reconciled.push(input);
      const page = asked.reconciled.length;
      return Promise.resolve({
        examined: 10,
        errors: page === 2 ? 1 : 0,
        actions: [
          {
            batchId: `batch_${page}`,
            status: 'in_progress',
            workflow: 'missing',
            action: 'resumed',
          },
        ],
        nextSeq: page < pages ? page * 10 : null,
      });
    },
    sweepPage: (input) => {
      asked.swept.push(input);
      const page = input.afterSeq + 1;
      return Promise.resolve({ removed: 2, nextSeq: page < sweepPages ? page : null });
    },
    deliverLate: () =>
      Promise.resolve({
        status: 'failed',
        outputFileId: 'file-o',
        errorFileId: null,
        delivered: true,
      }),
  };
}
