import type { Client } from '@temporalio/client';
import { type AttributeName, missingAttributes } from './missing-attributes';

/** How long a namespace without the attribute is believed to lack it, ms. */
const ASK_AGAIN_MS = 60_000;
const ANSWER_MS = 2_000;

/** What {@link createAttributeCheck} may be given. */
export interface AttributeCheckOptions {
  /** A clock that never goes back, ms. */
  readonly nowMs?: () => number;
}

/**
 * Says whether the namespace has a search attribute that was added to the product later. An upsert of a missing one
 * would block the workflow for ever, so false if the server does not say
 * (docs/design/temporal.md#attributes-that-came-later). Asks until it is there, at most once a minute.
 */
export function createAttributeCheck(
  client: Client,
  name: AttributeName,
  { nowMs = () => performance.now() }: AttributeCheckOptions = {},
): () => Promise<boolean> {
  let isThere = false;
  let askAtMs = -Infinity;
  const ask = async (): Promise<boolean> => {
    const missing = await client.withDeadline(Date.now() + ANSWER_MS, () =>
      missingAttributes(client),
    );
    return !missing.includes(name);
  };
  return async () => {
    if (isThere || nowMs() < askAtMs) return isThere;
    isThere = await ask().catch(() => false);
    askAtMs = nowMs() + ASK_AGAIN_MS;
    return isThere;
  };
}
