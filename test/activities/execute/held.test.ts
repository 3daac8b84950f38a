import type { ServerResponse } from 'node:http';
import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { ApplicationFailure } from '@temporalio/activity';
import type { ExecuteChunkResult } from '../../../activities/contract';
import type { Answer, Received } from '../../inference/local-server';
import { until } from '../../support/until';
import type { ChunkWorld } from './chunk-world';
import { chunkWorld } from './chunk-world';
import { nameOf, ok, status } from './model-server';

/** Chunks whose requests a gateway holds, and which says when it dispatches one. */

let world: ChunkWorld;
afterEach(() => world.close());

/** A gateway that holds every request until the test dispatches it, and closes its connection with it. */
function holdingGateway() {
  const held = new Map<string, { request: Received; response: ServerResponse }>();
  const open = new Map(held);
  const answer: Answer = (request, response) => {
    const name = nameOf(request);
    held.set(name, { request, response });
    open.set(name, { request, response });
    response.once('close', () => {
      if (open.get(name)?.response !== response) return;
      held.delete(name);
      open.delete(name);
    });
  };
  const reply = (name: string, by: Answer): void => {
    const { request, response } = open.get(name)!;
    by(request, response, response.socket!);
  };
  return {
    answer,
    held: () => [...held.keys()],
    open: () => [...open.keys()],
    dispatch: (name: string) => {
      open.get(name)!.response.writeProcessing();
      held.delete(name);
    },
    finish: (name: string) => reply(name, ok),
    drop: (name: string) =>
      reply(name, status(503, { 'x-nightshift-dropped': 'queue_ttl_expired', 'retry-after': '9' })),
  };
}

const GATEWAY = { request_timeout: '60s', max_retries: 0, initial_backoff: '1ms' };

async function openWith(perModel: number, lines: number, changes: Partial<typeof GATEWAY> = {}) {
  const gateway = holdingGateway();
  const settings = { concurrency: { per_model: perModel }, batch: { cancel_grace: '60s' } };
  world = await chunkWorld(lines, gateway.answer, settings, {
    gateway: { ...GATEWAY, ...changes },
  });
  return gateway;
}

const isFull = (gateway: ReturnType<typeof holdingGateway>, count: number) =>
  until(() => gateway.open().length === count, 5_000, `${count} open requests`, 5);

/** Dispatches a line, and waits until the worker knows that the gateway reports dispatches. */
async function dispatchFirst(gateway: ReturnType<typeof holdingGateway>) {
  gateway.dispatch('l0');
  const { backend } = world.deps.registry.route('m')!;
  await until(() => backend.reportsDispatch, 5_000, 'the report', 5);
}

/** Answers one of `count` open lines, and waits until the time slice has ended while the others are held. */
async function outlastSlice(
  gateway: ReturnType<typeof holdingGateway>,
  { count, endMs }: { count: number; endMs: number },
) {
  await isFull(gateway, count);
  await dispatchFirst(gateway);
  gateway.finish('l0');
  await until(() => Date.now() > endMs + 200, 5_000, 'the end of the time slice');
}

describe('a chunk that leaves', () => {
  const stopped = { left: 'stopped', stopCause: 'cancelled' } as const;
  it.each<[string, Partial<ExecuteChunkResult>, (env: MockActivityEnvironment) => void]>([
    ['at a cancel', stopped, () => world.lease.tell({ stopCause: 'cancelled' })],
    ['at a shutdown', { left: 'drain' }, () => world.drain.abort()],
    [
      'at the cancellation of its activity',
      stopped,
      (env) => env.cancel('CANCELLED', ActivityCancellationDetails.fromProto({})),
    ],
  ])('%s closes held requests without a try, and awaits dispatched ones', async (_, end, leave) => {
    const gateway = await openWith(8, 8);
    const env = new MockActivityEnvironment();
    const running = world.run({}, env);
    await isFull(gateway, 8);
    await dispatchFirst(gateway);
    leave(env);
    await until(() => gateway.open().length === 1, 5_000, 'closed connections', 2);
    expect(gateway.open()).toEqual(['l0']);
    gateway.finish('l0');
    expect(await running).toMatchObject({ ...end, next: 1, answered: 1, failed: 0 });
    expect(await world.retries()).toEqual([]);
    expect([...(await world.answers()).keys()]).toEqual([0]);
    const { breaker } = world.deps.registry.route('m')!;
    expect(breaker).toMatchObject({ state: 'closed', failingSinceMs: null });
  });

  it('at the end of its time slice gives held requests 5 s, then closes them, and they are sent again', async () => {
    const gateway = await openWith(4, 4);
    const endMs = Date.now() + 500;
    const running = world.run({ boxMs: 500 });
    await outlastSlice(gateway, { count: 4, endMs });
    gateway.dispatch('l1');
    gateway.finish('l1');
    await until(() => gateway.open().length === 0, 10_000, 'closed connections', 5);
    expect(Date.now()).toBeGreaterThanOrEqual(endMs + 5_000);
    expect(await running).toMatchObject({ left: 'box', next: 2, answered: 2 });
    const next = world.run({ from: 2 });
    await isFull(gateway, 2);
    for (const name of gateway.open()) gateway.finish(name);
    expect(await next).toMatchObject({ left: 'done', completed: 2 });
    const sent = world.seen().sort();
    expect(sent).toEqual(['l0', 'l1', 'l2', 'l2', 'l3', 'l3']);
    const answers = [...(await world.answers()).values()];
    expect(answers.map(({ line }) => line.response?.status_code)).toEqual([200, 200, 200, 200]);
  });

  it('at a cancel closes what its time slice has left in the queue', async () => {
    const gateway = await openWith(4, 4);
    const endMs = Date.now() + 300;
    const running = world.run({ boxMs: 300 });
    await outlastSlice(gateway, { count: 4, endMs });
    world.lease.tell({ stopCause: 'cancelled' });
    await until(() => gateway.open().length === 0, 3_000, 'closed connections', 2);
    expect(await running).toMatchObject({ next: 1, answered: 1, stopCause: 'cancelled' });
  });

  it('gives a request that is dispatched after its time slice all of its time', async () => {
    const gateway = await openWith(2, 2, { request_timeout: '2s' });
    const endMs = Date.now() + 1_200;
    const running = world.run({ boxMs: 1_200 });
    await isFull(gateway, 2);
    const sentMs = Date.now();
    await dispatchFirst(gateway);
    gateway.finish('l0');
    await until(() => Date.now() > endMs + 200, 5_000, 'the end of the time slice');
    gateway.dispatch('l1');
    await until(() => Date.now() > sentMs + 2_500, 5_000, 'the end of its time since it was sent');
    gateway.finish('l1');
    expect(await running).toMatchObject({ next: 2, answered: 2, failed: 0 });
  });
});

it('sends requests that time out in the queue again, and their lines lose no try', async () => {
  const gateway = await openWith(3, 3, { request_timeout: '300ms' });
  const running = world.run();
  await isFull(gateway, 3);
  await dispatchFirst(gateway);
  gateway.finish('l0');
  const sentTwice = () => world.seen().length >= 1 + 2 * 3;
  await until(sentTwice, 5_000, 'two more tries of the other lines', 2);
  let isOver = false;
  void running.finally(() => (isOver = true));
  const serveAll = (): boolean => {
    for (const name of gateway.held()) {
      gateway.dispatch(name);
      gateway.finish(name);
    }
    return isOver;
  };
  await until(serveAll, 5_000, 'the end of the chunk', 5);
  expect(await running).toMatchObject({ left: 'done', completed: 3, failed: 0 });
  expect(await world.retries()).toEqual([]);
});

describe('a chunk whose requests are all held', () => {
  /** Lets the gateway report a dispatch before the chunk begins. */
  async function reportingGateway(perModel: number, lines: number) {
    const gateway = await openWith(perModel, lines);
    const first = world.run({ to: 1 });
    await isFull(gateway, 1);
    await dispatchFirst(gateway);
    gateway.finish('l0');
    await first;
    return gateway;
  }

  const attempt = (limitMs: number) =>
    new MockActivityEnvironment({ startToCloseTimeoutMs: limitMs + 120_000 });

  it('stays through drops until its first answer, and has a time slice from then on', async () => {
    const gateway = await reportingGateway(2, 30);
    const endMs = Date.now() + 300;
    const running = world.run({ from: 1, boxMs: 300 }, attempt(60_000));
    await isFull(gateway, 2);
    await until(() => Date.now() > endMs + 100, 5_000, 'the end of the time slice');
    for (const name of gateway.open()) gateway.drop(name);
    await until(() => gateway.open().includes('l3'), 5_000, 'other lines', 5);
    // Each answer lets another line be sent, until the slice that began with the first one ends.
    let isOver = false;
    void running.finally(() => (isOver = true));
    let answered = 0;
    await until(
      () => {
        const [name] = gateway.open();
        if (name !== undefined && answered < 8) {
          gateway.dispatch(name);
          gateway.finish(name);
          answered++;
        }
        return isOver;
      },
      10_000,
      'the end of the chunk, which gives its held requests 5 s',
      10,
    );
    expect(await running).toMatchObject({ left: 'box', answered: 8 });
  });

  it.each([
    ['returns as held', false],
    ['waits at the server', true],
  ])('%s when it must leave without an answer', async (_, mayWait) => {
    const gateway = await reportingGateway(2, 30);
    const waiting = mayWait ? { mayWait, maxDeaths: 3 } : {};
    const running = world
      .run({ from: 1, boxMs: 200, ...waiting }, attempt(600))
      .catch((error: unknown) => error);
    await isFull(gateway, 2);
    await until(() => gateway.open().length === 0, 5_000, 'closed connections', 5);
    const end = await running;
    if (mayWait) expect(end).toBeInstanceOf(ApplicationFailure);
    expect(end).toMatchObject(
      mayWait ? { type: 'held', category: 'BENIGN' } : { left: 'held', answered: 0, next: 1 },
    );
    expect(await world.retries()).toEqual([]);
  });

  it('leaves after its time slice if the gateway drops everything at once', async () => {
    const gateway = await reportingGateway(2, 3);
    const running = world.run({ from: 1, boxMs: 300 }, attempt(60_000));
    await isFull(gateway, 2);
    const endMs = Date.now() + 300;
    await until(() => Date.now() > endMs + 50, 5_000, 'the end of the time slice');
    for (const name of gateway.open()) gateway.drop(name);
    expect(await running).toMatchObject({ left: 'box', answered: 0, next: 1 });
  });
});
