import { checkRound } from './checker';
import type { Arrival, BatchEvidence, BatchView, Disturbance } from './evidence';
import { unansweredText } from './expect';
import { isReachable } from './states';
import {
  NOW_MS,
  KINDS,
  LINES,
  OUTPUT,
  ERRORS,
  textOf,
  view,
  WHOLE,
  samples,
  arrival,
  SENT,
  round,
  rules,
  KILL,
} from './fixtures';

describe('the check of a round without violations', () => {
  it('passes', () => {
    expect(checkRound(round())).toEqual({ violations: [], resends: [] });
  });

  it.each([
    ['whose lines without a route had their error code already', true],
    ['whose lines without a route were still undecided', false],
  ])('passes with a batch that was cancelled half way, %s', (_, isDecided) => {
    const answered = LINES.filter(({ index }) => index < 3);
    const isUnrouted = ({ line }: (typeof LINES)[number]) => isDecided && line.kind === 'unrouted';
    const open = LINES.filter((line) => line.index >= 3 && !isUnrouted(line));
    const unrouted = LINES.filter(isUnrouted);
    const texts = new Map([
      ...[...answered, ...unrouted].map((line) => [line.index, line.answered.text] as const),
      ...open.map((line) => [line.index, unansweredText(line, 'batch_cancelled')] as const),
    ]);
    const inOutput = [0, 2];
    const errors = [...texts].sort(([a], [b]) => a - b).filter(([i]) => !inOutput.includes(i));
    const end = view('cancelled', {
      request_counts: { total: 7, completed: 2, failed: isDecided ? 2 : 1 },
      usage: {
        input_tokens: 12,
        input_tokens_details: { cached_tokens: 2 },
        output_tokens: 4,
        total_tokens: 16,
      },
    });
    const cancelling = view('cancelling');
    const batch: Partial<BatchEvidence> = {
      samples: samples(view('in_progress'), cancelling, end),
      cancels: [
        { sentMs: NOW_MS + 1_020, gotMs: NOW_MS + 1_050, httpStatus: 200, batch: cancelling },
      ],
      output: textOf(inOutput.map((i) => texts.get(i)!)),
      errors: textOf(errors.map(([, text]) => text)),
    };
    const arrivals = SENT.slice(0, 3);
    expect(rules({ batch, arrivals })).toEqual([]);
    // One of the lines without answer had its answer all the time.
    expect(rules({ batch, arrivals: SENT })).toEqual(['lost-answer']);
  });
});

describe('the check of result files', () => {
  const output = OUTPUT.map(({ answered }) => answered.text);
  const errors = ERRORS.map(({ answered }) => answered.text);

  it.each<[string, Partial<BatchEvidence>, string]>([
    ['a repeated line', { output: textOf([...output, output.at(-1)!]) }, 'doubled-line'],
    ['a line in both files', { errors: textOf([output[0]!, ...errors]) }, 'doubled-line'],
    ['a lost line', { output: textOf(output.slice(1)) }, 'lost-line'],
    ['a missing file', { errors: null }, 'lost-line'],
    ['another order', { output: textOf([...output].reverse()) }, 'order'],
    [
      'a line of another batch',
      { output: textOf([...output, '{"custom_id":"x"}']) },
      'foreign-line',
    ],
    ['half a line', { output: textOf(output).slice(0, -30) }, 'file-end'],
    ['a changed answer', { output: textOf(output).replace('Antwort', 'antwort') }, 'bytes'],
    [
      'a line that was not sent in a completed batch',
      { errors: textOf([...errors.slice(0, -1), unansweredText(ERRORS.at(-1)!, 'batch_expired')]) },
      'bytes',
    ],
  ])('finds %s', (_, batch, rule) => {
    expect(rules({ batch })).toContain(rule);
  });

  it.each<[string, Partial<BatchView>, string]>([
    ['counts that differ', { request_counts: { total: 7, completed: 5, failed: 2 } }, 'counts'],
    ['a usage that differs', { usage: { ...WHOLE.usage!, output_tokens: 14 } }, 'usage'],
  ])('finds %s from the files', (_, over, rule) => {
    const end = view('completed', { ...WHOLE, ...over });
    expect(rules({ batch: { samples: samples(end) } })).toEqual([rule]);
  });
});

describe('the check of the states of a batch', () => {
  it.each<[string, BatchView[], string]>([
    ['a missing end', [view('in_progress')], 'no-end'],
    ['an impossible end', [view('failed', WHOLE)], 'end'],
    [
      'a status that goes back',
      [view('finalizing'), view('in_progress'), view('completed', WHOLE)],
      'transition',
    ],
    ['a completion after a cancel', [view('cancelling'), view('completed', WHOLE)], 'transition'],
    ['a change after the end', [view('completed'), view('completed', WHOLE)], 'terminal'],
    [
      'a time that changes',
      [view('in_progress', { in_progress_at: 5 }), view('completed', WHOLE)],
      'times',
    ],
    ['a status without its time', [view('completed', { ...WHOLE, completed_at: null })], 'times'],
    [
      'counts that fall',
      [
        view('in_progress', { request_counts: { total: 7, completed: 2, failed: 0 } }),
        view('in_progress', { request_counts: { total: 7, completed: 1, failed: 0 } }),
        view('completed', WHOLE),
      ],
      'counts',
    ],
  ])('finds %s', (_, seen, rule) => {
    expect(rules({ batch: { samples: samples(...seen) } })).toContain(rule);
  });

  it.each<[string, number, BatchView | null]>([
    ['accepted although the batch completed', 200, view('cancelling')],
    ['refused as a client error', 400, null],
  ])('finds a cancel that was %s', (_, httpStatus, batch) => {
    const cancel = { sentMs: NOW_MS + 1_050, gotMs: NOW_MS + 1_060, httpStatus, batch };
    expect(rules({ batch: { cancels: [cancel] } })).toContain('cancel');
  });

  it('allows statuses between two samples that no sample shows', () => {
    expect(isReachable('validating', 'completed')).toBe(true);
    expect(isReachable('validating', 'cancelled')).toBe(true);
    expect(isReachable('cancelling', 'completed')).toBe(false);
    expect(isReachable('expired', 'cancelled')).toBe(false);
  });
});

describe('the check of requests', () => {
  const again = arrival(0, { atMs: NOW_MS + 950, endedAtMs: NOW_MS + 960 });

  it('finds a second request without a reason', () => {
    expect(rules({ arrivals: [...SENT, again] })).toEqual(['sent-again']);
  });

  it('allows a request after a failed one', () => {
    const failed = arrival(0, { final: false });
    const dropped = arrival(2, { end: 'dropped' });
    const arrivals = [
      failed,
      dropped,
      ...SENT.filter(({ lineId }) => lineId !== failed.lineId),
      again,
    ];
    const [first, ...others] = arrivals;
    const inTime = [first!, ...others].sort((a, b) => a.atMs - b.atMs);
    expect(checkRound(round({ arrivals: inTime }))).toEqual({ violations: [], resends: [] });
  });

  it('allows resending what was in flight or answered just before a kill, nothing older', () => {
    const answeredAt = (agoMs: number): Arrival =>
      arrival(0, { atMs: NOW_MS + 100, endedAtMs: KILL.fromMs - agoMs });
    const others = SENT.slice(1);
    const judged = (first: Arrival): string[] =>
      rules({ arrivals: [first, ...others, again], disturbances: [KILL] });
    expect(judged(answeredAt(100))).toEqual([]);
    expect(judged(arrival(0, { end: 'aborted', final: false, endedAtMs: KILL.fromMs }))).toEqual(
      [],
    );
    expect(judged(answeredAt(400))).toEqual(['sent-again']);
    const { resends } = checkRound(
      round({ arrivals: [answeredAt(100), ...others, again], disturbances: [KILL] }),
    );
    expect(resends).toMatchObject([{ fault: KILL }]);
  });

  it('allows resending a request whose answer was on its way when the connection ended', () => {
    const frozen: Disturbance = { ...KILL, kind: 'freeze', fromMs: NOW_MS, toMs: NOW_MS + 300 };
    const crossing = arrival(0, { endedAtMs: NOW_MS + 700 });
    const other = arrival(2, { end: 'aborted', final: false, endedAtMs: NOW_MS + 701 });
    const others = SENT.filter((_, i) => i !== 0 && i !== 2);
    const scene = (arrivals: readonly Arrival[]) => ({ arrivals, disturbances: [frozen] });
    expect(rules(scene([crossing, other, ...others, again]))).toEqual([]);
    expect(rules(scene([crossing, SENT[2]!, ...others, again]))).toEqual(['sent-again']);
  });

  it('does not allow resending answered requests after a drain or a killed API', () => {
    const first = arrival(0, { endedAtMs: KILL.fromMs - 10 });
    const arrivals = [first, ...SENT.slice(1), again];
    for (const fault of [{ kind: 'drain' }, { part: 'api' }] as Partial<Disturbance>[]) {
      expect(rules({ arrivals, disturbances: [{ ...KILL, ...fault }] })).toEqual(['sent-again']);
    }
  });

  it.each<[string, Arrival, string]>([
    ['after the window', arrival(0, { atMs: NOW_MS + 60_051 }), 'late'],
    ['after the end', arrival(0, { atMs: NOW_MS + 2_000 }), 'after-end'],
    ['with another body', arrival(0, { body: '{"model":"alpha"}' }), 'body'],
    ['for a line that no model serves', arrival(KINDS.indexOf('unrouted')), 'unrouted'],
    ['for no line at all', arrival(0, { lineId: 'batch_req_0' }), 'foreign-request'],
  ])('finds a request %s', (_, late, rule) => {
    const others = SENT.filter(({ lineId }) => lineId !== late.lineId);
    expect(rules({ arrivals: [...others, late] })).toContain(rule);
  });

  it('allows a request after the window only if a silent link held it back and only when that is mended', () => {
    const hang: Disturbance = {
      kind: 'hang',
      part: 'to-all',
      fromMs: NOW_MS + 59_000,
      toMs: NOW_MS + 63_000,
    };
    const late = (atMs: number): Arrival =>
      arrival(0, { atMs, end: 'aborted', endedAtMs: atMs + 1 });
    const expired = samples(view('in_progress'), view('expired', WHOLE)).map((sample, i) => ({
      ...sample,
      sentMs: sample.sentMs + i * 60_000,
      gotMs: sample.gotMs + i * 60_000,
    }));
    const found = (atMs: number, over: Partial<Disturbance> = {}): boolean =>
      ['late', 'after-end'].some((rule) =>
        rules({
          batch: { samples: expired },
          arrivals: [...SENT.slice(1), late(atMs)],
          disturbances: [{ ...hang, ...over }],
        }).includes(rule),
      );
    expect(found(hang.toMs + 40)).toBe(false);
    expect(found(hang.toMs - 1_000)).toBe(true);
    expect(found(hang.toMs + 60)).toBe(true);
    expect(found(hang.toMs + 40, { part: 'to-temporal' })).toBe(true);
    expect(found(hang.toMs + 40, { kind: 'cut' })).toBe(true);
    expect(found(hang.toMs + 40, { fromMs: hang.toMs - 500 })).toBe(true);
  });

  it('allows a request after the end from a worker that was cut off from everything', () => {
    const cut: Disturbance = {
      kind: 'cut',
      part: 'to-all',
      fromMs: NOW_MS + 1_100,
      toMs: NOW_MS + 3_000,
    };
    const found = (atMs: number, over: Partial<Disturbance> = {}): boolean =>
      rules({
        arrivals: [...SENT.slice(1), arrival(0, { atMs, endedAtMs: atMs + 5 })],
        disturbances: [{ ...cut, ...over }],
      }).includes('after-end');
    expect(found(cut.toMs + 1_900)).toBe(false);
    expect(found(cut.toMs + 2_001)).toBe(true);
    expect(found(cut.toMs - 500)).toBe(true);
    expect(found(cut.toMs + 500, { part: 'to-postgres' })).toBe(true);
    expect(found(cut.toMs + 500, { fromMs: NOW_MS + 2_000 })).toBe(true);
  });

  it('finds an answer without a request', () => {
    expect(rules({ arrivals: SENT.slice(1) })).toEqual(['invented']);
  });

  it('finds a request long after an undisturbed cancel', () => {
    const cancelling = view('cancelling');
    const cancel = {
      sentMs: NOW_MS + 400,
      gotMs: NOW_MS + 410,
      httpStatus: 200,
      batch: cancelling,
    };
    const late = arrival(0, { atMs: NOW_MS + 3_500 });
    const scene = { batch: { cancels: [cancel] }, arrivals: [...SENT.slice(1), late] };
    expect(rules(scene)).toContain('cancel');
  });
});
