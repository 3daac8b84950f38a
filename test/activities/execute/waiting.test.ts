import type { ApplicationFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import type {
  ExecuteChunkInput,
  ExecuteChunkResult,
  ModelRoute,
} from '../../../activities/contract';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';

/** What the attempts of a chunk that may wait at the server report and cost. */

let world: ChunkWorld;
const answers: (() => void)[] = [];
afterEach(async () => {
  world.drain.abort();
  for (const answer of answers.splice(0)) answer();
  await world.close();
});

let begun = 0;
let route: ModelRoute | null = null;

function hold(settings: Record<string, unknown> = {}): Promise<ChunkWorld> {
  begun = 0;
  route = null;
  return chunkWorld(2, (_, response) => answers.push(() => response.end('{}')), settings, {
    replace: ({ progress }) => ({
      routes: { routeOf: () => route },
      progress: {
        ...progress,
        begin: (...args) => {
          begun++;
          return progress.begin(...args);
        },
      },
    }),
  });
}

const inLine = () => world.waiting();

const WAITING: Partial<ExecuteChunkInput> = { mayWait: true, maxDeaths: 3, reroutes: true };

interface Attempt {
  readonly heartbeats: { deaths?: number; holding?: boolean }[];
  readonly end: Promise<ExecuteChunkResult | ApplicationFailure>;
}

function attempt(over: Partial<ExecuteChunkInput>, info: object = {}): Attempt {
  const env = new MockActivityEnvironment(info);
  const heartbeats: Attempt['heartbeats'] = [];
  env.on('heartbeat', (details: Attempt['heartbeats'][0]) => heartbeats.push(details));
  const end = world.run(over, env).catch((error: unknown) => error as ApplicationFailure);
  return { heartbeats, end };
}

/** One chunk has the only permit; six others wait for it in the process. */
async function fill(): Promise<void> {
  void attempt({});
  await until(() => world.server.received.length === 1, 5_000, 'the permit to be taken', 10);
  // The second line of the first chunk waits as well.
  for (let i = 0; i < 6; i++) void attempt({});
  await until(() => inLine() === 7, 5_000, 'a line', 10);
}

it('defers a chunk before it takes its row or heartbeats, if many are waiting', async () => {
  world = await hold({ concurrency: { per_model: 1 } });
  await fill();
  const before = begun;
  const { heartbeats, end } = attempt(WAITING);
  expect(await end).toMatchObject({ type: 'no_permit', nonRetryable: false });
  expect(((await end) as ApplicationFailure).nextRetryDelay).toBeLessThanOrEqual(250);
  expect(heartbeats).toEqual([]);
  expect(begun).toBe(before);
  // A chunk of another tenant may still wait in the process.
  void attempt({ ...WAITING, tenant: 'other' });
  await until(() => inLine() === 8, 5_000, 'the other tenant', 10);
  // A chunk that may not wait at the server returns to its lane.
  const plain = await attempt({ reroutes: true }).end;
  expect(plain).toMatchObject({ left: 'no_permit', answered: 0, next: 0 });
});

it('waits at the server for a gateway that is away, and counts no crash', async () => {
  world = await hold();
  const { breaker } = world.deps.registry.route('m')!;
  for (let i = 0; i < 5; i++) {
    const nowMs = Date.now() - 20_000 + i * 5_000;
    breaker.onFailure({ lineId: `l${i}`, kind: 'connect', nowMs });
  }
  expect(breaker.state).toBe('open');
  // While a probe is in flight, no other request is sent.
  await until(() => breaker.admit(Date.now()) === 'probe', 5_000, 'a probe', 5);
  const { heartbeats, end } = attempt(WAITING);
  expect(await end).toMatchObject({
    type: 'breaker_open',
    message: expect.stringContaining('default'),
  });
  expect(heartbeats).toEqual([]);
  breaker.onSuccess(Date.now());
  const later = attempt(WAITING, { attempt: 7, heartbeatDetails: { deaths: 1, holding: false } });
  await until(() => answers.length === 2, 5_000, 'both requests', 10);
  for (const answer of answers.splice(0)) answer();
  expect(await later.end).toMatchObject({ left: 'done', answered: 2 });
  expect(later.heartbeats[0]).toMatchObject({ deaths: 1, holding: true });
});

it('reports in its last heartbeat that it ended by itself, before it waits at the server', async () => {
  world = await hold();
  world.lease.frozen = true;
  const { heartbeats, end } = attempt({ ...WAITING, boxMs: 100 });
  expect(await end).toMatchObject({ type: 'box', nonRetryable: false });
  expect(heartbeats[0]).toMatchObject({ deaths: 0, holding: true });
  expect(heartbeats.at(-1)).toMatchObject({ deaths: 0, holding: false });
});

it('gives up after the allowed number of worker crashes', async () => {
  world = await hold();
  const dead = { attempt: 9, heartbeatDetails: { deaths: 2, holding: true } };
  expect(await attempt(WAITING, dead).end).toMatchObject({
    type: 'workers_died',
    nonRetryable: true,
  });
  expect(world.server.received).toEqual([]);
});

it('sends nothing if its worker has no gateway for the model, and returns as unrouted or waits', async () => {
  world = await hold({
    global_inference_gateway: undefined,
    model_gateways: {
      other: {
        url: 'http://127.0.0.1:9',
        request_timeout: '1s',
        max_retries: 0,
        initial_backoff: '1s',
        max_backoff: '1s',
      },
    },
  });
  expect(await attempt({ reroutes: true }).end).toMatchObject({ left: 'unrouted', answered: 0 });
  expect(await attempt(WAITING).end).toMatchObject({ left: 'unrouted' });
  // A workflow of an older version does not know `unrouted`, so it gets a reason that makes its lane pause.
  expect(await attempt({}).end).toMatchObject({ left: 'no_permit' });
  // Another worker of the same task queue serves the model: the chunk waits there for that worker.
  route = { queue: 'test', requestTimeoutMs: 1_000 };
  expect(await attempt(WAITING).end).toMatchObject({ type: 'unrouted', nonRetryable: false });
});
