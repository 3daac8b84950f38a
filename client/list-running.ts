import type { Client } from '@temporalio/client';
import { BATCH_WORKFLOW } from '../workflows/contract';

/** Ids of all batches whose workflow runs, according to visibility, which lags by seconds or more. */
export type ListRunning = () => Promise<ReadonlySet<string>>;

const PAGE = 1_000;
const QUERY = `WorkflowType = '${BATCH_WORKFLOW}' AND ExecutionStatus = 'Running'`;

/** {@link ListRunning} over a Temporal client: one call per 1,000 workflows. */
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
