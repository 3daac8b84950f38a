import type { FastifyInstance } from 'fastify';
import { NightshiftError } from '../../core/errors';
import type { PoolTable } from '../pools/pool-table';

/** `GET /v1/models` and `GET /v1/models/{model}`: the models that the settings name. */
export function addModelRoutes(app: FastifyInstance, pools: PoolTable): void {
  app.get('/models', async () => ({ object: 'list', data: pools.models.map(modelObject) }));
  // A model's name may contain slashes.
  app.get<{ Params: { '*': string } }>('/models/*', async ({ params: { '*': model } }) => {
    if (pools.models.includes(model)) return modelObject(model);
    const message = `The model ${JSON.stringify(model)} does not exist.`;
    const details = { param: 'model', apiCode: 'model_not_found' };
    throw new NightshiftError('not_found', message, details);
  });
}

function modelObject(id: string) {
  return { id, object: 'model', created: 0, owned_by: 'nightshift' };
}
