import type { Client } from '@temporalio/client';
import { isGrpcServiceError, ServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { History } from '@temporalio/common/lib/proto-utils';
import { NightshiftError } from '../core/errors';
import { BATCH_WORKFLOW, MAINTENANCE_WORKFLOWS } from '../workflows/contract';

/** Which open workflows to read. */
export interface OpenWorkflowQuery {
  /** A filter of Temporal's visibility, in addition to "ours and running". */
  readonly filter?: string;
}

/** A workflow that was running when it was listed; `history` is null if Temporal no longer has it. */
export interface OpenHistory {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly history: History | null;
}

const PAGE = 1_000;

/**
 * Number of running workflows of batches and maintenance, according to visibility.
 * @throws temporal_unavailable; invalid_request if the server does not understand the filter
 */
export async function countOpenWorkflows(
  client: Client,
  query: OpenWorkflowQuery,
): Promise<number> {
  const { count } = await explained(client.workflow.count(visibilityQuery(query)));
  return count;
}

/**
 * Running workflows with their histories, newest first. Holds one history and one page of ids at a time.
 * The caller may stop early. @throws temporal_unavailable, invalid_request
 */
export async function* openHistories(
  client: Client,
  query: OpenWorkflowQuery,
): AsyncGenerator<OpenHistory> {
  const { namespace } = client.options;
  let nextPageToken: Uint8Array = new Uint8Array();
  do {
    const page = { namespace, query: visibilityQuery(query), pageSize: PAGE, nextPageToken };
    const answer = await explained(client.workflowService.listWorkflowExecutions(page));
    for (const { execution, type } of answer.executions) {
      const workflowId = execution?.workflowId ?? '';
      const history = await fetchHistory(client, workflowId, execution?.runId ?? '');
      yield { workflowId, workflowType: type?.name ?? '', history };
    }
    nextPageToken = answer.nextPageToken;
  } while (nextPageToken.length > 0);
}

function visibilityQuery({ filter }: OpenWorkflowQuery): string {
  const types = [BATCH_WORKFLOW, ...Object.values(MAINTENANCE_WORKFLOWS)];
  const ours = `WorkflowType IN (${types.map((type) => `'${type}'`).join(', ')})`;
  const running = `${ours} AND ExecutionStatus = 'Running'`;
  return filter === undefined ? running : `${running} AND (${filter})`;
}

async function fetchHistory(
  client: Client,
  workflowId: string,
  runId: string,
): Promise<History | null> {
  try {
    return await explained(client.workflow.getHandle(workflowId, runId).fetchHistory());
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

const INVALID_ARGUMENT = 3;

async function explained<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    const cause = error instanceof ServiceError ? error.cause : error;
    if (!isGrpcServiceError(cause)) throw error;
    const details = cause.details || cause.message;
    if (Number(cause.code) === INVALID_ARGUMENT) {
      const text = `Temporal does not understand the query: ${details}`;
      throw new NightshiftError('invalid_request', text, { cause: error });
    }
    const text = `Temporal could not be asked for open workflows: ${details}`;
    throw new NightshiftError('temporal_unavailable', text, { cause: error });
  }
}
