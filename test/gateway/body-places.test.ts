import Fastify, { type FastifyInstance } from 'fastify';
import { addBodyPlaces } from '../../gateway/requests/arriving-bodies';
import { BodyRoom } from '../../gateway/requests/body-room';
import { addBodyParsers } from '../../http/bodies/body-parsers';
import { loadConfig } from '../../platform/config';
import { until } from '../support/until';

let app: FastifyInstance | undefined;
afterEach(() => app?.close());

let nowMs = 0;
const SLOW_AFTER_MS = 10;
const roomOf = () =>
  new BodyRoom({ bytes: 100, sheddableBytes: 50, slowAfterMs: SLOW_AFTER_MS, now: () => nowMs });

/** A body of this name that arrives, and has so many bytes reserved. */
function arriving(room: BodyRoom, evicted: string[], name: string, bytes: number) {
  const place = room.place(name.startsWith('batch'));
  place.evictable(() => evicted.push(name));
  expect(place.reserve(bytes)).toBe(true);
  return place;
}

it('frees the bytes of a body that its route never gets', async () => {
  const room = roomOf();
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
  const room = roomOf();
  const place = room.place(true);
  expect(place.reserve(50)).toBe(true);
  place.release();
  place.release();
  expect(place.reserve(1)).toBe(false);
  expect(room.bytes).toBe(0);
});

describe('when there is no room, a body', () => {
  const evicted: string[] = [];
  let room: BodyRoom;
  beforeEach(() => {
    room = roomOf();
    evicted.length = 0;
  });
  const body = (name: string, bytes: number) => arriving(room, evicted, name, bytes);

  it('takes the room of those that have not grown for the longest, and of no more than it needs', () => {
    const first = body('first', 30);
    nowMs++;
    body('second', 30);
    body('third', 30);
    expect(first.reserve(10)).toBe(true);
    nowMs += SLOW_AFTER_MS;
    expect(room.place(false).reserve(31)).toBe(true);
    expect(evicted).toEqual(['second', 'third']);
    expect(room.bytes).toBe(71);
  });

  it('takes that of batches first, and as a batch of nothing else', () => {
    body('user', 60);
    body('batch 1', 20);
    nowMs += SLOW_AFTER_MS;
    expect(room.place(true).reserve(30)).toBe(true);
    expect(evicted).toEqual(['batch 1']);
    expect(room.place(true).reserve(15)).toBe(false);
    body('batch 2', 10);
    nowMs += SLOW_AFTER_MS;
    expect(room.place(true).reserve(25)).toBe(false);
    body('another user', 30);
    expect(evicted).toEqual(['batch 1', 'batch 2', 'user']);
  });

  it('takes nothing from bodies that grow, that have arrived, or if that would not be enough', () => {
    const arrived = body('arrived', 40);
    arrived.evictable(null);
    body('slow', 20);
    nowMs += SLOW_AFTER_MS;
    body('fast', 40);
    expect(room.place(false).reserve(21)).toBe(false);
    expect(evicted).toEqual([]);
    expect(room.bytes).toBe(100);
  });

  it('is refused if it is the slowest itself', () => {
    const slowest = body('slowest', 50);
    nowMs++;
    body('slow', 50);
    nowMs += SLOW_AFTER_MS;
    expect(slowest.reserve(1)).toBe(false);
    expect(evicted).toEqual([]);
  });

  it('is told once that it lost its room, and gets none afterwards', () => {
    const lost = body('lost', 100);
    nowMs += SLOW_AFTER_MS;
    body('next', 100);
    lost.release();
    expect(lost.reserve(1)).toBe(false);
    expect(evicted).toEqual(['lost']);
    expect(room.bytes).toBe(100);
  });
});
