import type { Client } from '@temporalio/client';
import { BATCH_WORKFLOW } from '../workflows/contract';

/** The ids of all batches whose workflow runs, as visibility has it: it lags behind, by seconds or more. */
export type ListRunning = () => Promise<ReadonlySet<string>>;

const PAGE = 1_000;
const QUERY = `WorkflowType = '${BATCH_WORKFLOW}' AND ExecutionStatus = 'Running'`;

/** {@link ListRunning} over a Temporal client: one call for each thousand. */
export function createListRunning(client: Client, callTimeoutMs = 10_000): ListRunning {
  const { namespace } = client.options;
  return async () => {
    const ids = new Set<string>();
    let nextPageToken: Uint8Array = new Uint8Array();
    do {
      const page = { namespace, query: QUERY, pageSize: PAGE, nextPageToken };
      const answer = await client.withDeadline(Date.now() + callTimeoutMs, () =>
        client.workflowService.listWorkflowExecutions(page),
      );
      for (const { execution } of answer.executions) ids.add(execution?.workflowId ?? '');
      nextPageToken = answer.nextPageToken;
    } while (nextPageToken.length > 0);
    return ids;
  };
}
