import type { FastifyInstance } from 'fastify';
import { addResource } from '../../http/resource';
import type { RouteDeps } from '../app-deps';
import { toJobObject } from '../objects/job-object';
import { toListObject } from '../objects/list-object';
import { findBatch } from './find-batch';

/** The jobs of a batch at providers (docs/design/api-contract.md#jobs-of-a-batch). */
export function addBatchJobRoutes(app: FastifyInstance, deps: RouteDeps): void {
  addResource(app, '/nightshift/batches/:batch_id/jobs', {
    GET: async (request) => {
      const { id, tenant } = await findBatch(request, deps);
      const jobs = await deps.jobs.ofBatch(id, tenant);
      const { providers } = deps.config;
      return toListObject({ data: jobs, hasMore: false }, (job) =>
        toJobObject(job, providers[job.provider]?.type ?? null),
      );
    },
  });
}
