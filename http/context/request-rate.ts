import type { onRequestAsyncHookHandler } from 'fastify';
import { type RequestBudget, resetText, takeRequest } from '../../core/openai/request-rate';
import { NightshiftError } from '../../core/errors';

/** Above this number of tenants, budgets that are full again are dropped. */
const MANY_TENANTS = 10_000;
const MINUTE_MS = 60_000;
/** SDKs ignore a longer Retry-After. */
const MAX_RETRY_AFTER_SEC = 60;

/**
 * A hook that limits each tenant's requests to this process and reports the remaining ones in OpenAI's
 * headers (docs/design/api-contract.md#request-rate). It throws rate_limited.
 */
export function requestRateLimit(
  perMinute: number,
  nowMs: () => number,
): onRequestAsyncHookHandler {
  const budgets = new Map<string, RequestBudget>();
  return async ({ tenant }, reply) => {
    const now = nowMs();
    const verdict = takeRequest(budgets.get(tenant), perMinute, now);
    if (budgets.size >= MANY_TENANTS && !budgets.has(tenant)) dropFullBudgets(budgets, now);
    budgets.set(tenant, verdict.budget);
    reply.headers({
      'x-ratelimit-limit-requests': String(perMinute),
      'x-ratelimit-remaining-requests': String(verdict.remaining),
      'x-ratelimit-reset-requests': resetText(verdict.resetMs),
    });
    if (verdict.isAllowed) return;
    const waitSec = Math.ceil(verdict.retryMs / 1_000);
    reply.header('retry-after', String(Math.min(MAX_RETRY_AFTER_SEC, Math.max(1, waitSec))));
    throw tooMany(perMinute, verdict.retryMs);
  };
}

function tooMany(perMinute: number, retryMs: number): NightshiftError {
  const message = `Rate limit reached for requests. Limit: ${perMinute} / min. Please try again in ${resetText(retryMs)}.`;
  return new NightshiftError('rate_limited', message, { apiCode: 'rate_limit_exceeded' });
}

/** A budget that was not used for a minute is full, which is what a new tenant starts with. */
function dropFullBudgets(budgets: Map<string, RequestBudget>, nowMs: number): void {
  for (const [tenant, { atMs }] of budgets) {
    if (nowMs - atMs >= MINUTE_MS) budgets.delete(tenant);
  }
}
