import type { FastifyInstance } from 'fastify';
import { NightshiftError } from '../core/errors';
import type { Config } from '../platform/config-schema';
import { originCheck } from '../platform/own-names';

/** Refuses requests for other names than ours, and those of foreign web pages. */
export function refuseForeignPages(
  app: FastifyInstance,
  config: Pick<Config, 'api' | 'auth'>,
): void {
  const check = originCheck(config, config.api.host);
  app.addHook('onRequest', async ({ raw: { headers } }) => {
    const { host, origin } = headers;
    const site = headers['sec-fetch-site'];
    const fetchSite = Array.isArray(site) ? site.join(', ') : site;
    const fault = check({ host, origin, fetchSite });
    if (fault !== null) throw new NightshiftError('forbidden', fault);
  });
}
