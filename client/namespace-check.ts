import type { Client } from '@temporalio/client';
import { ScheduleNotFoundError } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../workflows/contract';
import { NAMESPACE_RETENTION_MS } from './namespace';
import { SCHEDULES } from './schedules';

/** What a namespace lacks, each in one phrase. */
export interface NamespaceFindings {
  readonly missing: readonly string[];
  /** What this client may not look at. */
  readonly unknown: readonly string[];
}

/** Looks for everything that `migrate` makes; changes nothing. @throws the SDK's errors */
export async function checkNamespace(client: Client): Promise<NamespaceFindings> {
  const missing: string[] = [];
  const unknown: string[] = [];
  const look = async (what: string, find: () => Promise<string[]>): Promise<void> => {
    try {
      missing.push(...(await find()));
    } catch (error) {
      if (!isRefusal(error)) throw error;
      unknown.push(what);
    }
  };
  await look('search attributes', () => missingAttributes(client));
  await look('retention', () => shortRetention(client));
  await look('schedules', () => missingSchedules(client));
  return { missing, unknown };
}

async function missingAttributes(client: Client): Promise<string[]> {
  const { namespace } = client.options;
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({
    namespace,
  });
  return Object.entries(SEARCH_ATTRIBUTES)
    .filter(([name]) => !(name in customAttributes))
    .map(([name, type]) => `search attribute ${name} (${type})`);
}

async function shortRetention(client: Client): Promise<string[]> {
  const { namespace } = client.options;
  const { config } = await client.connection.workflowService.describeNamespace({ namespace });
  const keptMs = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) * 1000;
  return keptMs < NAMESPACE_RETENTION_MS ? ['retention of at least 7 days'] : [];
}

async function missingSchedules(client: Client): Promise<string[]> {
  const missing: string[] = [];
  for (const id of Object.values(SCHEDULES)) {
    try {
      await client.schedule.getHandle(id).describe();
    } catch (error) {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
      missing.push(`schedule ${id}`);
    }
  }
  return missing;
}

const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;

/** The SDK wraps what gRPC said. */
function isRefusal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    if (code === PERMISSION_DENIED || code === UNIMPLEMENTED) return true;
  }
  return false;
}
