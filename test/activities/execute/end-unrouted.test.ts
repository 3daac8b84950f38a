import { MockActivityEnvironment } from '@temporalio/testing';
import { createEndUnrouted } from '../../../activities/execute/end-unrouted';
import type { ExecuteChunkInput, ExecuteChunkResult } from '../../../activities/contract';
import { NightshiftError } from '../../../core/errors';
import { lineId } from '../../../core/names/ids';
import type { ChunkWorld } from './chunk-world';
import { BATCH_ID, chunkWorld, INPUT_KEY, NONCE } from './chunk-world';

/** How lines end whose model no worker can send. */

const LINES = 600;

let world: ChunkWorld;
let begun: number;
let isKnown: () => boolean;

beforeEach(async () => {
  begun = 0;
  isKnown = () => false;
  world = await chunkWorld(LINES, (_, response) => response.end('{}'));
});
afterEach(() => world.close());

function endUnrouted(
  over: Partial<ExecuteChunkInput> = {},
  env = new MockActivityEnvironment(),
): Promise<ExecuteChunkResult | null> {
  const { deps, lease } = world;
  const activity = createEndUnrouted({
    ...deps,
    progress: {
      ...deps.progress,
      begin: () => {
        begun++;
        return Promise.resolve(lease);
      },
    },
    isKnownNow: async () => isKnown(),
  });
  const ids = { batchId: BATCH_ID, planNonce: NONCE, tenant: 'default', inputKey: INPUT_KEY };
  const names = { endpoint: '/v1/chat/completions', model: 'm', safe: 'm' };
  const range = { from: 0, to: LINES, deadlineMs: Date.now() + 3_600_000 };
  const input = { ...ids, ...names, ...range, boxMs: 0, p95Ms: null, priority: 3, ...over };
  return env.run(activity, input);
}

const seals = async () => (await world.journal.listSeals(BATCH_ID)).length;

it('journals model_not_found for every line, seals, and sends nothing', async () => {
  const result = await endUnrouted();
  expect(result).toMatchObject({ next: LINES, completed: 0, failed: LINES, answered: LINES });
  expect(result).toMatchObject({ left: 'done', stopCause: null });
  const answers = await world.answers();
  expect(answers.size).toBe(LINES);
  expect(answers.get(7)).toMatchObject({
    status: 0,
    line: {
      id: lineId(BATCH_ID, world.offsetOf(7)),
      custom_id: 'l7',
      response: null,
      error: {
        code: 'model_not_found',
        message: 'No model server serves the model of this request.',
      },
    },
  });
  expect(await seals()).toBe(1);
  expect(world.lease.released).toEqual({ to: LINES, completed: 0, failed: LINES });
  expect(world.server.received).toEqual([]);
});

it('changes nothing if a worker can send the model after all', async () => {
  isKnown = () => true;
  expect(await endUnrouted()).toBeNull();
  expect(begun).toBe(0);
  expect(await seals()).toBe(0);
});

it('fails with a retryable error while PostgreSQL cannot be asked for the routes of workers', async () => {
  isKnown = () => {
    throw new NightshiftError('postgres_unavailable', 'away');
  };
  const failure = { type: 'postgres_unavailable', nonRetryable: false };
  await expect(endUnrouted()).rejects.toMatchObject(failure);
  expect(begun).toBe(0);
});

it('does not touch lines that have an answer', async () => {
  await world.run({ to: 2 });
  const result = await endUnrouted({ to: 4 });
  expect(result).toMatchObject({ next: 4, completed: 2, failed: 2, answered: 2 });
  const codes = [...(await world.answers())].map(([line, answer]) => [
    line,
    answer.line.error?.code,
  ]);
  expect(Object.fromEntries(codes)).toEqual({
    0: undefined,
    1: undefined,
    2: 'model_not_found',
    3: 'model_not_found',
  });
});

it.each([
  ['a stop', { stopCause: 'cancelled' as const }, { left: 'stopped', stopCause: 'cancelled' }],
  ['the end of the batch', { terminal: true }, { left: 'row_terminal' }],
  ['the loss of its range', { lost: true }, { left: 'fenced' }],
])('ends no line after %s', async (_, told, expected) => {
  world.lease.tell(told);
  expect(await endUnrouted()).toMatchObject({ next: 0, answered: 0, ...expected });
  expect((await world.answers()).size).toBe(0);
  expect(await seals()).toBe(0);
});

it('ends no line after the deadline, so that they end as expired', async () => {
  const result = await endUnrouted({ deadlineMs: Date.now() - 1 });
  expect(result).toMatchObject({ next: 0, left: 'stopped', stopCause: 'expired' });
  expect((await world.answers()).size).toBe(0);
});

it('returns when it is cancelled', async () => {
  const env = new MockActivityEnvironment();
  world.lease.frozen = true;
  const end = endUnrouted({}, env);
  env.cancel();
  expect(await end).toMatchObject({ next: 0, left: 'stopped', stopCause: 'cancelled' });
});
