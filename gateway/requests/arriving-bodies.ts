import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { BAND, type Band } from '../../core/dispatch/queue/band';
import { whenClosed } from '../../http/connections/exchanges';
import { RETRY_AFTER_SEC } from '../../http/errors/error-envelope';
import type { Config } from '../../platform/config-schema';
import type { GatewayMetrics } from '../../platform/gateway-metrics';
import { answerFault } from '../answers/drop-answer';
import type { PoolTable } from '../pools/pool-table';
import { bandOf } from './admission-rules';
import type { BodyRoom } from './body-room';
import type { FaultLog } from './fault-log';

/** The settings by which a request is classified before its body is known. */
type RuleConfig = Pick<Config, 'auth' | 'gateway'>;

/** Gives the body of every request a place in `room`. It must come after the hook that finds the caller. */
export function addBodyPlaces(app: FastifyInstance, config: RuleConfig, room: BodyRoom): void {
  app.addHook('onRequest', (request, reply, done) => {
    const place = room.place(bandOnArrival(config, request) === BAND.sheddable);
    request.bodyPlace = place;
    // The route releases the place, but it does not run if the client is gone or a hook fails. The client may be gone
    // already, because looking up the caller takes time.
    if (reply.raw.closed || reply.raw.destroyed) place.release();
    else whenClosed(reply.raw, () => place.release());
    done();
  });
}

/** What {@link refuseBody} needs besides the request. */
export interface RefusalContext {
  readonly config: RuleConfig;
  readonly pools: PoolTable;
  readonly metrics: Pick<GatewayMetrics, 'flow'>;
  readonly faults: Pick<FaultLog, 'log'>;
}

/** Answers a request for whose body there was no room. */
export function refuseBody(
  { config, pools, metrics, faults }: RefusalContext,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const code = 'queue_bytes_exceeded';
  const band = bandOnArrival(config, request);
  metrics.flow.bands[band].dropped[code]++;
  const { id: requestId, tenant } = request;
  const unknown = { model: null, pool: null, backend: null, reason: null };
  faults.log({ ...unknown, code, band, requestId, tenant, waitedMs: 0 });
  answerFault(reply, code, {
    policy: config.gateway.status_policy,
    readyBackends: pools.pools.reduce((sum, { readyBackends }) => sum + readyBackends, 0),
    retryAfterSec: Number(RETRY_AFTER_SEC[503]),
  });
}

/** The band as far as headers decide it. `service_tier` is in the body. */
function bandOnArrival({ auth, gateway }: RuleConfig, request: FastifyRequest): Band {
  const { isWorker, tenant } = request;
  const rules = { gateway, isOpen: auth.mode === 'none' };
  return bandOf(request, { isWorker, tenant, serviceTier: null }, rules);
}
