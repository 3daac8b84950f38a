import type { Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../workflows/contract';

/** Name of a search attribute of batches. */
export type AttributeName = keyof typeof SEARCH_ATTRIBUTES;

/** The search attributes that the client's namespace lacks. @throws the SDK's errors */
export async function missingAttributes(client: Client): Promise<AttributeName[]> {
  const { namespace } = client.options;
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({
    namespace,
  });
  const names = Object.keys(SEARCH_ATTRIBUTES) as AttributeName[];
  return names.filter((name) => !(name in customAttributes));
}
