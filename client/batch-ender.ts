import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { batchWorkflowId, deliveryWorkflowId, BATCH_QUEUE } from '../workflows/contract';
import { MAINTENANCE_WORKFLOWS } from '../workflows/contract';

/** What reconcile asks of Temporal when it ends a batch without its workflow. */
export interface BatchEnder {
  /** Terminates the workflow. Succeeds if it is closed or missing. */
  terminate(batchId: string): Promise<void>;
  /** Starts a late delivery of the result files. Succeeds if one is running. */
  deliverLater(batchId: string): Promise<void>;
}

/** {@link BatchEnder} over a Temporal client. */
export function createBatchEnder(client: Client, callTimeoutMs = 5_000): BatchEnder {
  const withinDeadline = <T>(call: () => Promise<T>): Promise<T> =>
    client.withDeadline(Date.now() + callTimeoutMs, call);
  return {
    terminate: (batchId) => withinDeadline(() => terminate(client, batchId)),
    deliverLater: async (batchId) => {
      await withinDeadline(() =>
        client.workflow.start(MAINTENANCE_WORKFLOWS.deliverLate, {
          workflowId: deliveryWorkflowId(batchId),
          args: [{ batchId }],
          taskQueue: BATCH_QUEUE,
          workflowIdReusePolicy: 'ALLOW_DUPLICATE',
          workflowIdConflictPolicy: 'USE_EXISTING',
          workflowExecutionTimeout: '1d',
        }),
      );
    },
  };
}

async function terminate(client: Client, batchId: string): Promise<void> {
  try {
    const handle = client.workflow.getHandle(batchWorkflowId(batchId));
    await handle.terminate('the batch was ended without its workflow');
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
