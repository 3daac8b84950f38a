import type { FastifyInstance } from 'fastify';
import { NightshiftError } from '../../core/errors';
import { addResource } from '../../http/resource';
import type { ListedModel } from '../../inference/proxy/model-listing';
import { answerFault } from '../answers/drop-answer';
import type { AudioScheduler } from '../audio/job';
import type { PoolTable } from '../pools/pool-table';

/**
 * `GET /v1/models` and `GET /v1/models/{model}`: the models of audio workers, those that the settings name, and those that the backends
 * of a pool of `*` list (docs/design/gateway.md#models).
 */
export function addModelRoutes(
  app: FastifyInstance,
  pools: PoolTable,
  audio: Pick<AudioScheduler, 'models'>,
): void {
  const names = () => [...new Set([...audio.models, ...pools.models])];
  addResource(app, '/models', {
    GET: async () => {
      const listed = (await pools.listed?.list()) ?? [];
      const named = names();
      const others = listed.filter(({ id }) => !named.includes(id));
      return { object: 'list', data: [...named.map(namedModel), ...others.map(listedModel)] };
    },
  });
  // A model's name may contain slashes.
  addResource(app, '/models/*', {
    GET: async ({ params }, reply) => {
      const { '*': id } = params as { '*': string };
      if (names().includes(id)) return namedModel(id);
      const listed = pools.listed === null ? [] : await pools.listed.list();
      // A list that is not known must not look like one without this model.
      if (listed === null) return answerFault(reply, 'no_backends', NO_LIST);
      const found = listed.find((model) => model.id === id);
      if (found !== undefined) return listedModel(found);
      const message = `The model ${JSON.stringify(id)} does not exist.`;
      const details = { param: 'model', apiCode: 'model_not_found' };
      throw new NightshiftError('not_found', message, details);
    },
  });
}

/** A pool that never gave a list has no queue to wait for: backends are probed every few seconds. */
const NO_LIST = { policy: 'seed', readyBackends: 0, retryAfterSec: 5 } as const;

function namedModel(id: string) {
  return { id, object: 'model', created: 0, owned_by: 'nightshift' };
}

/** With the members that OpenAI requires, whatever the backend leaves out. */
function listedModel(model: ListedModel) {
  return { created: 0, owned_by: 'unknown', ...model, object: 'model' };
}
