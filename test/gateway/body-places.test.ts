import Fastify, { type FastifyInstance } from 'fastify';
import { addBodyPlaces } from '../../gateway/requests/arriving-bodies';
import { BodyRoom } from '../../gateway/requests/body-room';
import { addBodyParsers } from '../../http/bodies/body-parsers';
import { loadConfig } from '../../platform/config';
import { until } from '../support/until';

let app: FastifyInstance | undefined;
afterEach(() => app?.close());

it('frees the bytes of a body that its route never gets', async () => {
  const room = new BodyRoom({ bytes: 100, sheddableBytes: 50 });
  const reservedAtFault: number[] = [];
  app = Fastify({ forceCloseConnections: true });
  addBodyParsers(app, 100);
  app.decorateRequest('isWorker', false);
  app.decorateRequest('tenant', 'default');
  addBodyPlaces(app, loadConfig({ env: {}, needs: [] }), room);
  app.addHook('preHandler', async () => {
    reservedAtFault.push(room.bytes);
    throw new Error('a fault before the route');
  });
  app.post('/', async () => 'never');
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: '{}' });
  expect(answer.status).toBe(500);
  expect(reservedAtFault).toEqual([2]);
  await until(() => room.bytes === 0, 5_000, 'an empty room', 2);
});

it('reserves nothing for a body whose place was given back', () => {
  const room = new BodyRoom({ bytes: 100, sheddableBytes: 50 });
  const place = room.place(true);
  expect(place.reserve(50)).toBe(true);
  place.release();
  place.release();
  expect(place.reserve(1)).toBe(false);
  expect(room.bytes).toBe(0);
});
