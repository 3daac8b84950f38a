import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteDeps } from '../app-deps';
import { RETRY_AFTER_SEC } from '../../http/error-envelope';

/**
 * How many more batches the tenant may have open, on every answer of the one route with such a limit
 * (contract §4). Says nothing without a limit.
 */
export async function tellRoom(
  request: FastifyRequest,
  reply: FastifyReply,
  { batches, logger }: Pick<RouteDeps, 'batches' | 'logger'>,
): Promise<void> {
  const room = await batches.quota(request.tenant).catch((err: unknown) => {
    // The batch may have been created: its answer is worth more than these headers.
    logger.warn({ err, requestId: request.id }, 'limit not looked up');
    return null;
  });
  if (room === null) return;
  // Of two limits, clients need to know the one that they reach first.
  const before = reply.getHeader('x-ratelimit-remaining-requests');
  if (before !== undefined && Number(before) < room.remaining) return;
  reply.headers({
    'x-ratelimit-limit-requests': String(room.limit),
    'x-ratelimit-remaining-requests': String(room.remaining),
    // Nobody knows when a batch ends: the time after which it is worth another look.
    'x-ratelimit-reset-requests': room.remaining > 0 ? '0s' : `${RETRY_AFTER_SEC[429]}s`,
  });
}
