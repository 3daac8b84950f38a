import type { FastifyInstance } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { OriginCheck } from '../../platform/own-names';

/**
 * Refuses requests that `check` finds were meant for another server, or that a foreign web page sent
 * (docs/design/api-contract.md#web-pages).
 */
export function refuseForeignPages(app: FastifyInstance, check: OriginCheck): void {
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const { host, origin } = headers;
    const site = headers['sec-fetch-site'];
    const fetchSite = Array.isArray(site) ? site.join(', ') : site;
    const fault = check({ host, origin, fetchSite });
    if (fault !== null) throw new NightshiftError('forbidden', fault);
    done();
  });
}
