import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common';
import { NightshiftError } from '../core/errors';
import { SEARCH_ATTRIBUTES } from '../workflows/contract';
import { connectionOptions } from './connection-options';
import type { TemporalConfig } from './temporal-credentials';

/** Shortest time for which the namespace must keep closed workflows. */
export const NAMESPACE_RETENTION_MS = 7 * 24 * 3600 * 1000;

/** Numbers of `temporal.api.enums.v1.IndexedValueType`. */
const INDEXED_VALUE_TYPE = { Keyword: 2, Int: 3, Datetime: 6, KeywordList: 7 } as const;

/**
 * Prepares the namespace: adds missing search attributes, and keeps closed workflows for at least 7 days
 * (docs/design/temporal.md#namespace). Idempotent. @throws temporal_unavailable
 */
export async function prepareNamespace(config: TemporalConfig): Promise<void> {
  const connection = await connect(config);
  try {
    await addSearchAttributes(connection, config.namespace);
    await extendRetention(connection, config.namespace);
  } finally {
    await connection.close();
  }
}

async function connect(config: TemporalConfig): Promise<Connection> {
  try {
    return await Connection.connect({ ...connectionOptions(config), connectTimeout: '10s' });
  } catch (cause) {
    throw new NightshiftError(
      'temporal_unavailable',
      `No Temporal server answers at ${config.address}. Start one, or set temporal.address (TEMPORAL_ADDRESS).`,
      { cause },
    );
  }
}

async function addSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(SEARCH_ATTRIBUTES).filter(([name]) => !(name in customAttributes));
  if (missing.length === 0) return;
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(
      missing.map(([name, type]) => [name, INDEXED_VALUE_TYPE[type]]),
    ),
  });
}

async function extendRetention(connection: Connection, namespace: string): Promise<void> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  const keptMs = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) * 1000;
  if (keptMs >= NAMESPACE_RETENTION_MS) return;
  await connection.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: msToTs(NAMESPACE_RETENTION_MS) },
  });
}
