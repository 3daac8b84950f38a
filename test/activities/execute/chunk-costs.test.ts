import { ChunkCosts } from '../../../activities/execute/chunk-costs';
import { NO_USAGE } from '../../../core/batch/counts';
import type { TryOutcome } from '../../../core/dispatch/outcome';

const answer = (status: number, dropped: string | null = null): TryOutcome => ({
  ...{ kind: 'answer', status, retryAfter: null, droppedReason: null, dropped },
});
const failure = (reason: 'connect' | 'timeout' | 'connection' | 'unsent'): TryOutcome => ({
  ...{ kind: 'failure', reason },
});

it('expects a quarter of the bytes of a line and twice the output of earlier answers', () => {
  const costs = new ChunkCosts();
  expect(costs.expected({ length: 400 })).toBe(100 + 2 * 64);
  const usage = { ...NO_USAGE, inputTokens: 90, outputTokens: 0 };
  expect(costs.real(answer(200), usage)).toBe(90);
  expect(costs.expected({ length: 400 })).toBe(100 + 2 * 32);
});

it('counts input and twice the output of an answer', () => {
  const usage = { ...NO_USAGE, inputTokens: 90, outputTokens: 30 };
  expect(new ChunkCosts().real(answer(200), usage)).toBe(150);
});

it.each([
  ['was dropped unserved', answer(503, 'queue_ttl_expired'), 0],
  ['was dropped with a status that looks like success', answer(200, 'evicted'), 0],
  ['was refused', answer(429), 0],
  ['failed at the server', answer(500), 0],
  ['found no connection', failure('connect'), 0],
  ['was not sent', failure('unsent'), 0],
  ['has an answer without usage', answer(200), null],
  ['timed out', failure('timeout'), null],
  ['lost its connection', failure('connection'), null],
])('charges a request that %s: %j', (_what, outcome, cost) => {
  expect(new ChunkCosts().real(outcome, NO_USAGE)).toBe(cost);
});
