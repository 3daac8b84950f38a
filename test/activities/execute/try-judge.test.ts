import fc from 'fast-check';
import type { Chunk } from '../../../activities/execute/chunk';
import type { ChunkLine } from '../../../activities/execute/chunk-ledger';
import type { SentTry } from '../../../activities/execute/try-result';
import { TryJudge } from '../../../activities/execute/try-judge';
import { DROP_LABELS } from '../../../core/dispatch/drop-codes';
import { createBreaker, type Breaker } from '../../../core/dispatch/breaker';
import type { BackendOutcome } from '../../../inference/backend';
import type { Route } from '../../../inference/registry';

const gateway = { max_retries: 3, initial_backoff: 1_000, max_backoff: 60_000 };

function open() {
  const breaker = createBreaker({
    ...{ initialBackoffMs: 1_000, maxBackoffMs: 60_000, probeTimeoutMs: 60_000 },
  });
  const chunk = { batchId: `batch_${'0'.repeat(32)}`, deadlineMs: Number.MAX_SAFE_INTEGER };
  const route = { breaker, gateway };
  const judge = new TryJudge({ chunk: chunk as Chunk, route: route as unknown as Route });
  return { breaker, judge };
}

function lineAt(offset: number): ChunkLine {
  return {
    ...{ offset, length: 1, prefixHash: 0, position: offset, tries: 0, refusals: 0 },
    ...{ notBeforeMs: 0, unconnected: 0, unserved: 0, failingSinceMs: 0 },
  };
}

function sent(outcome: BackendOutcome, over: Partial<SentTry['how']> = {}): SentTry {
  const load = { sent: () => 1, replied: () => undefined, used: () => undefined };
  const how = { probe: false, load, stopping: () => false, openLines: () => 100, ...over };
  return { outcome, how, sentMs: 1, limit: 1 };
}

function answer(status: number, dropped: string | null = null): BackendOutcome {
  return {
    ...{ kind: 'answer', status, body: Buffer.from('{}'), retryAfter: '1' },
    ...{
      droppedReason: null,
      dropped,
      isFinal: false,
      contentType: null,
      queueMs: null,
      requestId: null,
    },
  };
}

const lost = (reason: 'connect' | 'connection' | 'timeout'): BackendOutcome => {
  return { kind: 'failure', reason, message: 'for the test' };
};

const stateOf = ({ state, retryAtMs, failingSinceMs, suspect, lastSuccessSentMs }: Breaker) => {
  return { state, retryAtMs, failingSinceMs, suspect, lastSuccessSentMs };
};

const SERVED = [
  ...[answer(200), answer(500), answer(502), answer(503), answer(429)],
  ...[lost('connect'), lost('connection'), lost('timeout')],
];

describe('a drop', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('changes nothing of the circuit breaker and no tries, after any history', () => {
    const event = fc.record({
      line: fc.integer({ min: 0, max: 4 }),
      outcome: fc.constantFrom(...SERVED),
      laterMs: fc.constantFrom(0, 1_000, 5_000),
    });
    const drop = fc.record({
      line: fc.integer({ min: 0, max: 4 }),
      status: fc.constantFrom(404, 429, 500, 502, 503, 504),
      code: fc.constantFrom(...DROP_LABELS),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), drop, (events, { line, status, code }) => {
        const { breaker, judge } = open();
        const lines = [0, 1, 2, 3, 4].map(lineAt);
        for (const { line: at, outcome, laterMs } of events) {
          jest.advanceTimersByTime(laterMs);
          judge.judge(lines[at]!, sent(outcome));
        }
        const before = stateOf(breaker);
        const { tries, refusals, failingSinceMs } = lines[line]!;
        const verdict = judge.judge(lines[line]!, sent(answer(status, code)));
        expect(verdict).toEqual({ kind: 'retry', atMs: Date.now() + 1_000 });
        expect(stateOf(breaker)).toEqual(before);
        expect(lines[line]).toMatchObject({ tries, refusals, failingSinceMs, unconnected: 0 });
      }),
    );
  });

  it('of a probe lets the next request probe at once, and keeps the breaker open', () => {
    const { breaker, judge } = open();
    for (let i = 0; i < 5; i++) {
      judge.judge(lineAt(i), sent(answer(502)));
      jest.advanceTimersByTime(5_000);
    }
    expect(breaker.state).toBe('open');
    expect(breaker.admit(Date.now())).toBe('probe');
    judge.judge(lineAt(9), sent(answer(503, 'evicted'), { probe: true }));
    expect(breaker.state).toBe('open');
    expect(breaker.admit(Date.now())).toBe('probe');
  });
});
