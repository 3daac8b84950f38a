import type { Client } from '@temporalio/client';
import { ScheduleNotFoundError } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../workflows/contract';
import { missingAttributes } from './missing-attributes';
import { NAMESPACE_RETENTION_MS } from './namespace';
import { SCHEDULES } from './schedules';

/** What a namespace lacks, one phrase for each thing. */
export interface NamespaceFindings {
  readonly missing: readonly string[];
  /** What this client has no permission to read. */
  readonly unknown: readonly string[];
}

/** Checks for everything that `nightshift migrate` makes, and changes nothing. @throws the SDK's errors */
export async function checkNamespace(client: Client): Promise<NamespaceFindings> {
  const missing: string[] = [];
  const unknown: string[] = [];
  const check = async (what: string, find: () => Promise<string[]>): Promise<void> => {
    try {
      missing.push(...(await find()));
    } catch (error) {
      if (!isPermissionError(error)) throw error;
      unknown.push(what);
    }
  };
  await check('search attributes', async () => {
    const names = await missingAttributes(client);
    return names.map((name) => `search attribute ${name} (${SEARCH_ATTRIBUTES[name]})`);
  });
  await check('retention', () => shortRetention(client));
  await check('schedules', () => missingSchedules(client));
  return { missing, unknown };
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

/** The SDK wraps the error of gRPC. */
function isPermissionError(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    if (code === PERMISSION_DENIED || code === UNIMPLEMENTED) return true;
  }
  return false;
}
