import { createHash } from 'node:crypto';

/** Folder name of a tenant's files: the first 32 hex digits of the SHA-256 of its name (docs/design/journal.md#object-names). */
export function tenantHash(tenant: string): string {
  return createHash('sha256').update(tenant).digest('hex').slice(0, 32);
}
