import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteDeps } from '../app-deps';
import { RETRY_AFTER_SEC } from '../../http/errors/error-envelope';

/**
 * Reports in OpenAI's rate limit headers how many more batches the tenant may have open, if that is
 * limited (docs/design/api-contract.md#tenant-quotas). Never throws.
 */
export async function addBatchLimitHeaders(
  request: FastifyRequest,
  reply: FastifyReply,
  { batches, logger }: Pick<RouteDeps, 'batches' | 'logger'>,
): Promise<void> {
  const quota = await batches.quota(request.tenant).catch((err: unknown) => {
    // The batch may have been created, and its answer matters more than these headers.
    logger.warn({ err, requestId: request.id }, 'limit not looked up');
    return null;
  });
  if (quota === null) return;
  // If the request rate is limited too, clients need the limit that they reach first.
  const before = reply.getHeader('x-ratelimit-remaining-requests');
  if (before !== undefined && Number(before) < quota.remaining) return;
  reply.headers({
    'x-ratelimit-limit-requests': String(quota.limit),
    'x-ratelimit-remaining-requests': String(quota.remaining),
    // It is unknown when a batch will end, so this is the time to retry after.
    'x-ratelimit-reset-requests': quota.remaining > 0 ? '0s' : `${RETRY_AFTER_SEC[429]}s`,
  });
}
