import type { BackendRequest } from '../../../inference/backend';
import type { Registry } from '../../../inference/registry';
import type { RequestEnd, Tracing } from '../../../platform/tracing/tracing';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { ok, status } from './model-server';

const SPAN = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
const PASSED = { traceparent: '00-11111111111111111111111111111111-2222222222222222-01' };

let world: ChunkWorld;
/** The header maps that were sent, as objects. */
let sent: BackendRequest['headers'][];

afterEach(() => world.close());
beforeEach(() => {
  sent = [];
});

/** The registry, noting the headers of each request. */
function noting(registry: Registry): Registry {
  return {
    ...registry,
    route: (model) => {
      const route = registry.route(model);
      if (route === null) return null;
      const send: typeof route.backend.send = (request) => {
        sent.push(request.headers);
        return route.backend.send(request);
      };
      return { ...route, backend: { ...route.backend, send } };
    },
  };
}

/** Spans of which every second line is sampled. */
function everySecond(ends: RequestEnd[], offsets: number[]): Pick<Tracing, 'requests'> {
  return {
    requests: () => ({
      begin: ({ offset }) => {
        const isSampled = offsets.push(offset) % 2 === 1;
        return { headers: isSampled ? SPAN : null, end: (end) => void ends.push(end) };
      },
    }),
  };
}

it('sends every request with the same header object and no trace header while tracing is off', async () => {
  world = await chunkWorld(
    20,
    ok,
    {},
    { replace: (deps) => ({ registry: noting(deps.registry), tracing: null }) },
  );
  await world.run();
  expect(sent).toHaveLength(20);
  expect(new Set(sent).size).toBe(1);
  for (const { headers } of world.server.received) {
    expect(headers).not.toHaveProperty('traceparent');
  }
});

it('sends every request with the same header object if the batch is not sampled', async () => {
  const tracing = { requests: () => null };
  world = await chunkWorld(
    20,
    ok,
    {},
    { replace: (deps) => ({ registry: noting(deps.registry), tracing }) },
  );
  await world.run();
  expect(new Set(sent).size).toBe(1);
});

it('sends traceparent with sampled requests only, in place of one that is passed through', async () => {
  const ends: RequestEnd[] = [];
  const offsets: number[] = [];
  world = await chunkWorld(
    10,
    ok,
    {},
    {
      passThrough: () => Promise.resolve({ ...PASSED, 'x-other': 'kept' }),
      replace: () => ({ tracing: everySecond(ends, offsets) }),
    },
  );
  await world.run({ passesHeaders: true });
  const given = world.server.received.map(({ headers }) => headers['traceparent']);
  expect(given.sort()).toEqual(
    [
      ...Array.from({ length: 5 }, () => SPAN.traceparent),
      ...Array.from({ length: 5 }, () => PASSED.traceparent),
    ].sort(),
  );
  for (const { headers } of world.server.received) expect(headers['x-other']).toBe('kept');
  expect(ends).toHaveLength(10);
  expect(offsets).toContain(world.offsetOf(0));
  expect(ends[0]).toEqual({ status: 200, failure: null, outcome: 'answered', retryAtMs: null });
});

it('tells how each try ended', async () => {
  const ends: RequestEnd[] = [];
  world = await chunkWorld(
    1,
    status(500),
    {},
    { replace: () => ({ tracing: everySecond(ends, []) }) },
  );
  await world.run();
  expect(ends.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'answered']);
  expect(ends.map((end) => end.status)).toEqual([500, 500, 500]);
  expect(ends[0]?.retryAtMs).toBeGreaterThan(0);
});
