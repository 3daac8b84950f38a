import type { Pool } from 'pg';
import type { AnnouncedRoutes, SeenRoutes } from '../../core/dispatch/announced-routes';
import { KNOWN_MS } from '../../core/dispatch/announced-routes';
import { query } from './sql';

/** Age after which rows of workers are deleted. The routing rules use only the last minutes. */
const FORGET_AFTER = '1 day';

/** Lets workers share which models they can send (docs/design/read-model.md#worker-routes). */
export interface WorkerRoutes {
  /**
   * Writes the routes of `worker`, or nothing if it has none to announce. Returns the routes that others
   * announced in the last {@link KNOWN_MS}. @throws postgres_unavailable
   */
  announce(worker: string, routes: AnnouncedRoutes | null): Promise<SeenRoutes[]>;
}

/** {@link WorkerRoutes} in the table `worker_routes`: one statement for each announcement. */
export function createWorkerRoutes(pool: Pool): WorkerRoutes {
  return {
    announce: async (worker, routes) => {
      const rows = await query<{ routes: AnnouncedRoutes; age_ms: number }>(
        pool,
        `with mine as (
           insert into worker_routes (worker, routes) select $1, $2::jsonb where $2::jsonb is not null
           on conflict (worker) do update set routes = excluded.routes, seen_at = now()
         ), forgotten as (
           delete from worker_routes where seen_at < now() - $4::interval
         )
         select routes,
                min(extract(epoch from now() - seen_at) * 1000)::float8 as age_ms
         from worker_routes
         where worker <> $1 and seen_at > now() - $3 * interval '1 millisecond'
         group by routes`,
        [worker, routes === null ? null : JSON.stringify(routes), KNOWN_MS, FORGET_AFTER],
      );
      return rows.map(({ routes: { global, models, audio }, age_ms }) => {
        return { global, models, audio, ageMs: Math.max(0, age_ms) };
      });
    },
  };
}
