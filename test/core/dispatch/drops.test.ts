import fc from 'fast-check';
import { DROP_LABELS } from '../../../core/dispatch/drop-codes';
import { dropLabelOf, retryCause, type TryOutcome } from '../../../core/dispatch/outcome';
import { costOf, isRetryable, nextTry } from '../../../core/dispatch/retry';

type Answer = TryOutcome & { readonly kind: 'answer' };
const answer = (status: number, over: Partial<Answer> = {}): Answer => {
  return { kind: 'answer', status, retryAfter: null, droppedReason: null, ...over };
};
const expired = (status: number, retryAfter: string | null = null) =>
  answer(status, { droppedReason: 'rejected-ttl-expired', retryAfter });
const gateway = { max_retries: 2, initial_backoff: 1_000, max_backoff: 60_000 };
const INPUT = { attempt: 3, counted: false, nowMs: 1_000, deadlineMs: 9e9, random: 0.5, gateway };

describe('a reply that the queue time of another gateway has expired', () => {
  it('is final only at or after the deadline of the batch', () => {
    for (const outcome of [expired(429), expired(503)]) {
      expect(isRetryable(outcome, { isPastDeadline: false })).toBe(true);
      expect(isRetryable(outcome, { isPastDeadline: true })).toBe(false);
      expect(nextTry({ ...INPUT, outcome, deadlineMs: 1_000 })).toEqual({ kind: 'final' });
    }
  });

  it('costs no try at any limit', () => {
    for (const limit of [null, 1, 16]) {
      for (const refusals of [0, 20]) {
        expect(costOf({ outcome: expired(429), limit, refusals })).toBe('nothing');
        expect(costOf({ outcome: expired(503), limit, refusals })).toBe('nothing');
      }
    }
  });

  it('counts as a drop in metrics', () => {
    expect([retryCause(expired(429)), dropLabelOf(expired(503))]).toEqual([
      'dropped',
      'queue_ttl_expired',
    ]);
    expect(dropLabelOf(answer(503))).toBeNull();
  });
});

it('labels a drop with its code, and every unknown code alike', () => {
  const label = (dropped: string) => dropLabelOf(answer(503, { dropped }));
  expect([label('evicted'), label('backend_unreachable'), label('constructor')]).toEqual([
    'evicted',
    'backend_unreachable',
    'other',
  ]);
  for (const code of DROP_LABELS) expect(label(code)).toBe(code);
});

describe('the pause after a drop', () => {
  const pauseMs = (retryAfter: string | null, unserved: number, dropped = 'evicted') => {
    const next = nextTry({ ...INPUT, unserved, outcome: answer(503, { dropped, retryAfter }) });
    return next.kind === 'retry' ? next.atMs - INPUT.nowMs : next.kind;
  };

  it('is the Retry-After of the gateway, however often the line was dropped', () => {
    expect([pauseMs('1', 1), pauseMs('2', 50), pauseMs('45', 1)]).toEqual([1_000, 2_000, 45_000]);
  });

  it('is a growing backoff if the gateway asks for less than a second', () => {
    for (const retryAfter of [null, '0', '0.2', 'soon']) {
      const pauses = [1, 2, 3, 50].map((unserved) => pauseMs(retryAfter, unserved));
      expect(pauses).toEqual([500, 1_000, 2_000, 30_000]);
    }
  });

  it('never ends at or after the deadline', () => {
    const outcome = answer(503, { dropped: 'evicted', retryAfter: '5' });
    expect(nextTry({ ...INPUT, outcome, deadlineMs: 6_000 })).toEqual({ kind: 'expired' });
    expect(nextTry({ ...INPUT, outcome, deadlineMs: 6_001 })).toEqual({
      kind: 'retry',
      atMs: 6_000,
    });
  });
});

describe('a line', () => {
  const given = { status: fc.constantFrom(400, 404, 429, 499, 500, 502, 503, 504) };
  const retryAfter = fc.constantFrom(null, '0', '1', '60');
  const unserved = fc.oneof(
    fc
      .record({ ...given, retryAfter, dropped: fc.constantFrom(...DROP_LABELS) })
      .map(({ status, ...over }) => answer(status, over)),
    fc
      .record({ status: fc.constantFrom(429, 503), retryAfter })
      .map((reply) => expired(reply.status, reply.retryAfter)),
  );
  const served = fc.constantFrom<TryOutcome>(
    ...[answer(429), answer(500), answer(503, { retryAfter: '1' }), answer(408)],
    ...([
      { kind: 'failure', reason: 'timeout' },
      { kind: 'failure', reason: 'connection' },
    ] as const),
  );

  it('has the same tries with any drops between its replies, and ends with the same one', () => {
    const event = fc.record({
      outcome: fc.oneof(unserved, served),
      limit: fc.constantFrom(null, 1, 2, 16),
      random: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60, size: 'max' }), (events) => {
        const isDrop = ({ outcome }: (typeof events)[0]) => dropLabelOf(outcome) !== null;
        const all = play(events);
        const without = play(events.filter((one) => !isDrop(one)));
        expect(all).toEqual(without);
        expect(all.tries).toBeLessThanOrEqual(gateway.max_retries + 1);
      }),
    );
  });
});

/** Plays replies to one line, until one of them is final. */
function play(events: readonly { outcome: TryOutcome; limit: number | null; random: number }[]): {
  tries: number;
  refusals: number;
  final: TryOutcome | null;
} {
  const line = { tries: 0, refusals: 0, unserved: 0 };
  let nowMs = 0;
  for (const { outcome, limit, random } of events) {
    const cost = costOf({ outcome, limit, refusals: line.refusals });
    line.unserved = cost === 'nothing' ? line.unserved + 1 : 0;
    if (cost === 'try') line.tries++;
    if (cost === 'refusal') line.refusals++;
    const next = nextTry({
      ...{ outcome, ...line, attempt: line.tries, counted: cost === 'try' },
      ...{ nowMs, random, gateway, deadlineMs: Number.MAX_SAFE_INTEGER },
    });
    const { tries, refusals } = line;
    if (next.kind !== 'retry') return { tries, refusals, final: outcome };
    nowMs = next.atMs;
  }
  return { tries: line.tries, refusals: line.refusals, final: null };
}
