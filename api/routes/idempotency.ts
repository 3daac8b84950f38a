import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { NightshiftError } from '../../core/errors';
import { isJsonObject } from '../../core/openai/json-object';
import type { IdempotencyKey, Once } from '../../storage/postgres/idempotency';
import { fault, wrongValue } from '../requests/faults';
import { headerValues } from '../../http/headers/header-values';

const HEADER = 'Idempotency-Key';

/** The value of the header `Idempotency-Key`: printable ASCII. */
export const idempotencyKeyHeader = z.string().regex(/^[ -~]{1,255}$/);

/** The key of a request; null if it has none (docs/design/api-contract.md#idempotency). @throws invalid_request */
export function idempotencyKey(request: FastifyRequest): string | null {
  const [key, another] = headerValues(request, HEADER);
  if (key === undefined) return null;
  if (another === undefined && idempotencyKeyHeader.safeParse(key).success) return key;
  throw wrongValue(HEADER, 'one key of 1 to 255 printable ASCII characters');
}

/** A key with the fingerprint of its request. Two requests are the same if their `fields` are equal. */
export function keyed(
  key: string,
  context: {
    readonly tenant: string;
    readonly route: string;
    readonly nowSec: number;
    readonly fields: Readonly<Record<string, unknown>>;
  },
): IdempotencyKey {
  const { fields, ...rest } = context;
  const fingerprint = createHash('sha256').update(canonical(fields)).digest('hex');
  return { key, fingerprint, ...rest };
}

/**
 * The object for a request with a key: the new one, or the current state of the one that the first request
 * created. @throws invalid_request, not_found
 */
export async function objectOf<T>(
  once: Once<T>,
  find: (id: string) => Promise<T | null>,
): Promise<T> {
  switch (once.kind) {
    case 'made':
      return once.object;
    case 'reused':
      throw fault(
        'idempotency_key_reused',
        HEADER,
        `This ${HEADER} was already used for a request with different content: send a new key.`,
      );
    case 'repeated': {
      const object = await find(once.id);
      if (object !== null) return object;
      const message = `The first request with this ${HEADER} created ${once.id}, which was deleted since.`;
      throw new NightshiftError('not_found', message, { param: HEADER });
    }
  }
}

/** JSON with the members of all objects sorted. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    if (!isJsonObject(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
