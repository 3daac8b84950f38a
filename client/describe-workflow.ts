import type { Client, WorkflowExecutionStatusName } from '@temporalio/client';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowState } from '../core/batch/orphans';
import { batchWorkflowId } from '../workflows/contract';

/** Returns the state of the latest run of a batch's workflow. */
export type DescribeWorkflow = (batchId: string) => Promise<WorkflowState>;

const CLOSED: readonly WorkflowExecutionStatusName[] = [
  'COMPLETED',
  'FAILED',
  'CANCELLED',
  'TERMINATED',
  'TIMED_OUT',
];

/**
 * {@link DescribeWorkflow} over a Temporal client. If the server does not answer or has no such namespace,
 * it throws the SDK's error and never returns `missing`. An unknown status counts as running.
 */
export function createDescribe(client: Client, callTimeoutMs = 5_000): DescribeWorkflow {
  return async (batchId) => {
    try {
      const handle = client.workflow.getHandle(batchWorkflowId(batchId));
      const { status } = await client.withDeadline(Date.now() + callTimeoutMs, () =>
        handle.describe(),
      );
      return CLOSED.includes(status.name) ? 'closed' : 'running';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'missing';
      throw error;
    }
  };
}
