import type { PoolClient } from 'pg';
import { DatabaseError, escapeIdentifier } from 'pg';
import { NightshiftError } from '../../core/errors';
import { query } from './sql';

/** A process that may have its own database user, other than the owner of the tables. */
export type Component = 'api' | 'worker';

/** The role of each component that has one. */
export type Grants = { readonly [component in Component]?: string | undefined };

type Privileges = Readonly<Record<string, string>>;

/** What both components need to check the schema and the store identity. */
const BOTH: Privileges = {
  'table schema_migrations': 'select',
  'table installation': 'select, insert',
};

/**
 * Privileges that the statements of each component need (docs/design/read-model.md#grants). Parts of an
 * upload are deleted by a cascade, which runs with the privileges of the owner. Locking rows (`for share`)
 * needs `update`.
 */
const NEEDED: Readonly<Record<Component, Privileges>> = {
  api: {
    ...BOTH,
    // Only the owner creates and revokes keys (nightshift keys).
    'table api_keys': 'select, update (last_used_at)',
    'table files': 'select, insert, update',
    'table uploads': 'select, insert, update',
    'table upload_parts': 'select, insert',
    'table batches': 'select, insert, update',
    // Headers of clients contain their keys: only the worker reads them.
    'table batch_headers': 'insert',
    'table removed_batches': 'select',
    'table idempotency_keys': 'select, insert, update',
    'table provider_jobs': 'select',
  },
  worker: {
    ...BOTH,
    'table files': 'select, insert, update, delete',
    'table uploads': 'select, update, delete',
    'table batches': 'select, update, delete',
    'table batch_headers': 'select, delete',
    'table batch_files': 'select, insert, delete',
    'table removed_batches': 'select, insert, delete',
    'table idempotency_keys': 'select, delete',
    'table chunk_progress': 'select, insert, update, delete',
    'sequence chunk_epoch': 'usage',
    'table worker_routes': 'select, insert, update, delete',
    'table provider_jobs': 'select, insert, update, delete',
  },
};

/**
 * Grants each component's role the privileges that it needs. Revokes nothing, because the previous release
 * may need more during a rollout. @throws config_invalid if a role does not exist, postgres_unavailable
 */
export async function grantTo(client: PoolClient, grants: Grants): Promise<void> {
  for (const component of ['api', 'worker'] as const) {
    const role = grants[component];
    if (role !== undefined) await grantAll(client, component, role);
  }
}

async function grantAll(client: PoolClient, component: Component, role: string): Promise<void> {
  const [place] = await query<{ schema: string }>(client, 'select current_schema() as schema');
  const schema = escapeIdentifier(place?.schema ?? 'public');
  const objects = { [`schema ${schema}`]: 'usage', ...NEEDED[component] };
  try {
    for (const [object, privileges] of Object.entries(objects)) {
      await query(client, `grant ${privileges} on ${object} to ${escapeIdentifier(role)}`);
    }
  } catch (cause) {
    if (!(cause instanceof DatabaseError) || cause.code !== UNKNOWN_ROLE) throw cause;
    const message = `postgres.grants.${component}: the database has no role ${role}: create it, or correct the name`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
}

/**
 * Turns a lack of privileges into an error that says what to do. Only the first statements of a process
 * need it: a process without privileges fails there. @throws config_invalid
 */
export async function explainRefusal<T>(statements: Promise<T>): Promise<T> {
  try {
    return await statements;
  } catch (cause) {
    if (!(cause instanceof DatabaseError) || cause.code !== REFUSED) throw cause;
    const message = `${cause.message}: run nightshift migrate as the owner of the tables, with the user of this process in postgres.grants`;
    throw new NightshiftError('config_invalid', message, { cause });
  }
}

const UNKNOWN_ROLE = '42704';
const REFUSED = '42501';
