import type { FastifyReply, FastifyRequest } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { type RequestBudget, resetText, takeRequest } from '../../core/dispatch/request-rate';
import type { RouteDeps } from '../app-deps';

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** Above this number of tenants, those that have asked nothing for a minute are forgotten. */
const MANY_TENANTS = 10_000;
const MINUTE_MS = 60_000;
/** Longest wait that every SDK heeds. */
const MAX_RETRY_AFTER_SEC = 60;

/**
 * Limits the requests of a tenant in this process, and says in OpenAI's headers how many are left; null
 * without `limits.tenant.requests_per_minute`. The hook throws rate_limited.
 */
export function requestRateLimit({
  config,
  nowMs,
}: Pick<RouteDeps, 'config' | 'nowMs'>): Hook | null {
  const { requests_per_minute: perMinute } = config.limits.tenant;
  if (perMinute === undefined) return null;
  const budgets = new Map<string, RequestBudget>();
  return async ({ tenant }, reply) => {
    const now = nowMs();
    const verdict = takeRequest(budgets.get(tenant), perMinute, now);
    if (budgets.size >= MANY_TENANTS && !budgets.has(tenant)) forgetQuiet(budgets, now);
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

/** A budget that nobody took from for a minute is full again. */
function forgetQuiet(budgets: Map<string, RequestBudget>, nowMs: number): void {
  for (const [tenant, { atMs }] of budgets) {
    if (nowMs - atMs >= MINUTE_MS) budgets.delete(tenant);
  }
}
