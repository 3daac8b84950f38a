import fc from 'fast-check';
import { ChunkLedger } from '../../../activities/execute/chunk-ledger';
import { LineQueue } from '../../../activities/execute/line-queue';
import { NO_USAGE } from '../../../core/batch/counts';
import { OpenRanges } from '../../../core/chunks/open-ranges';
import type { FrameKind } from '../../../core/journal/frame';
import { FRAME_KIND, SENT_ALONE } from '../../../core/journal/frame';
import { numberedSegmentKey, segmentKey } from '../../../core/names/object-names';
import { encodePlanEntry, PLAN_ENTRY_BYTES } from '../../../core/plan/plan-entry';
import type { FrameRef } from '../../../storage/journal/journal-store';

const OFFSET_STEP = 100;

function planOf(entries: number): Buffer {
  const plan = Buffer.alloc(entries * PLAN_ENTRY_BYTES);
  for (let i = 0; i < entries; i++) {
    encodePlanEntry(plan, i * PLAN_ENTRY_BYTES, {
      offset: i * OFFSET_STEP,
      length: 10,
      prefixHash: 0,
    });
  }
  return plan;
}

function ledgerOf(entries: number, from = 0): ChunkLedger {
  return new ChunkLedger({ from, to: from + entries }, planOf(entries));
}

function ref(
  index: number,
  kind: FrameKind,
  at: { key?: string; position?: number; tries?: number; status?: number } = {},
): FrameRef {
  return {
    header: {
      offset: index * OFFSET_STEP,
      kind,
      status: at.status ?? (kind === FRAME_KIND.retry ? 0 : 200),
      tries: at.tries ?? 1,
      usage: NO_USAGE,
      payloadLength: 1,
    },
    objectKey: at.key ?? 'a',
    position: at.position ?? index,
    byteLength: 45,
    ...(kind === FRAME_KIND.retry ? { notBeforeMs: 500 } : {}),
  };
}

describe('the ledger of a chunk', () => {
  it('returns the lowest unanswered position and the counts before it', () => {
    const ledger = ledgerOf(5, 20);
    ledger.addFrame(ref(0, FRAME_KIND.output));
    ledger.addFrame(ref(1, FRAME_KIND.error));
    ledger.addFrame(ref(3, FRAME_KIND.output));
    expect(ledger.next).toBe(22);
    expect(ledger.countsBeforeNext()).toEqual({ completed: 1, failed: 1 });
    expect({ completed: ledger.completed, failed: ledger.failed }).toEqual({
      completed: 2,
      failed: 1,
    });
    expect(ledger.framesToSeal([]).map((frame) => frame.header.offset)).toEqual([0, 100]);
  });

  it('ignores frames of other lines and does not count a retry frame as an answer', () => {
    const ledger = ledgerOf(2);
    ledger.addFrame(ref(7, FRAME_KIND.output));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { tries: 2 }));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { tries: 1 }));
    expect(ledger.next).toBe(0);
    expect(ledger.line(0)).toMatchObject({ tries: 2, notBeforeMs: 500 });
  });

  it('counts a crash if the note of an exclusive send is the last frame of the line in its segment', () => {
    const ledger = ledgerOf(2);
    const alone = { status: SENT_ALONE };
    ledger.addFrame(ref(0, FRAME_KIND.retry, { ...alone, key: 'a', position: 0 }));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { ...alone, key: 'b', position: 0 }));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { key: 'b', position: 1 }));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { key: 'c', position: 0 }));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { ...alone, key: 'c', position: 1 }));
    ledger.addFrame(ref(1, FRAME_KIND.retry, { key: 'a', position: 2 }));
    expect(ledger.crashesAlone(0)).toBe(2);
    expect(ledger.crashesAlone(1)).toBe(0);
  });

  it('counts a crash of a writer with numbered segments only if its latest one ends with the note', () => {
    const ledger = ledgerOf(1);
    const segment = (r: string, number: number) =>
      numberedSegmentKey(segmentKey('batch_1', 'm', { from: 0, to: 2 }, r.repeat(16)), number);
    const note = (key: string) =>
      ledger.addFrame(ref(0, FRAME_KIND.retry, { status: SENT_ALONE, key, position: 16 }));
    note(segment('a', 1));
    ledger.addFrame(ref(0, FRAME_KIND.retry, { key: segment('a', 2), position: 16 }));
    expect(ledger.crashesAlone(0)).toBe(0);
    note(segment('a', 3));
    note(segment('b', 1));
    note(segment('b', 2));
    expect(ledger.crashesAlone(0)).toBe(2);
  });

  it('counts each line once and seals the same frames in any order of reading', () => {
    const frame = fc.record({
      index: fc.nat(5),
      kind: fc.constantFrom(FRAME_KIND.output, FRAME_KIND.error, FRAME_KIND.retry),
      key: fc.constantFrom('a', 'b'),
      position: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(frame), fc.infiniteStream(fc.nat()), (frames, random) => {
        const refs = frames.map(({ index, kind, key, position }) =>
          ref(index, kind, { key, position }),
        );
        const shuffled = refs
          .map((item) => ({ item, by: random.next().value as number }))
          .sort((a, b) => a.by - b.by)
          .map(({ item }) => item);
        const [one, two] = [ledgerOf(6), ledgerOf(6)];
        for (const item of refs) one.addFrame(item);
        for (const item of shuffled) two.addFrame(item);
        expect(one.framesToSeal([])).toEqual(two.framesToSeal([]));
        expect(one.completed).toBe(two.completed);
        expect(one.completed + one.failed).toBe(
          new Set(frames.filter((f) => f.kind !== FRAME_KIND.retry).map((f) => f.index)).size,
        );
      }),
    );
  });
});

describe('the queue of lines', () => {
  it('returns fresh lines in plan order, skips answered ones, and is empty afterwards', () => {
    const ledger = ledgerOf(4);
    ledger.addFrame(ref(1, FRAME_KIND.output));
    const queue = new LineQueue(ledger, 10);
    const taken = [queue.take(0), queue.take(0), queue.take(0)].map((line) => line?.position);
    expect(taken).toEqual([0, 2, 3]);
    expect(queue.isEmpty).toBe(true);
    expect(queue.take(0)).toBeNull();
  });

  it('returns a line whose backoff is over before fresh lines', () => {
    const queue = new LineQueue(ledgerOf(3), 10);
    const line = queue.take(0);
    if (line === null) throw new Error('no line');
    line.notBeforeMs = 100;
    queue.putBack(line);
    expect(queue.take(50)?.position).toBe(1);
    expect(queue.nextDueMs).toBe(100);
    expect(queue.take(100)?.position).toBe(0);
  });

  it('returns no fresh line while too many lines are in backoff', () => {
    const queue = new LineQueue(ledgerOf(5), 2);
    for (let i = 0; i < 2; i++) {
      const line = queue.take(0);
      if (line !== null) queue.putBack({ ...line, notBeforeMs: 1_000 });
    }
    expect(queue.take(0)).toBeNull();
    expect(queue.take(1_000)?.position).toBe(0);
  });

  it('probes a gateway that is away with a different line each time', () => {
    const queue = new LineQueue(ledgerOf(3), 10);
    const asked: (number | undefined)[] = [];
    for (let nowMs = 100; nowMs <= 600; nowMs += 100) {
      const line = queue.takeForProbe(nowMs);
      asked.push(line?.position);
      if (line !== null) queue.putBack({ ...line, notBeforeMs: nowMs + 10 });
    }
    expect(asked).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('returns no line before its time, not even as a probe', () => {
    const ledger = ledgerOf(2);
    ledger.addFrame(ref(0, FRAME_KIND.retry, { tries: 1 }));
    const queue = new LineQueue(ledger, 10);
    expect(queue.takeForProbe(0)?.position).toBe(1);
    expect(queue.takeForProbe(0)).toBeNull();
    expect(queue.takeForProbe(500)?.position).toBe(0);
  });

  it('keeps the pause that an earlier attempt journalled', () => {
    const ledger = ledgerOf(2);
    ledger.addFrame(ref(0, FRAME_KIND.retry, { tries: 1 }));
    const queue = new LineQueue(ledger, 10);
    expect(queue.take(0)?.position).toBe(1);
    expect(queue.take(0)).toBeNull();
    expect(queue.take(500)).toMatchObject({ position: 0, tries: 1 });
  });
});

describe('open ranges', () => {
  it('hand out every position exactly once, in any order of taking, giving back and halving', () => {
    const action = fc.record({
      size: fc.integer({ min: 1, max: 40 }),
      done: fc.nat(40),
      fails: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), fc.array(action), (total, actions) => {
        const open = new OpenRanges([{ from: 0, to: total }]);
        const answered = new Set<number>();
        const answer = (from: number, to: number): void => {
          for (let position = from; position < to; position++) {
            expect(answered.has(position)).toBe(false);
            answered.add(position);
          }
        };
        for (const { size, done, fails } of actions) {
          const range = open.take(size);
          if (range === null) break;
          const next = Math.min(range.from + done, range.to);
          if (fails) {
            open.giveBackFailed(range);
            continue;
          }
          answer(range.from, next);
          open.giveBack({ from: next, to: range.to });
        }
        for (let range = open.take(1_000); range !== null; range = open.take(1_000)) {
          answer(range.from, range.to);
        }
        expect(answered.size).toBe(total);
      }),
    );
  });

  it('count the failures of a single line once it runs exclusively', () => {
    const open = new OpenRanges([{ from: 4, to: 5 }]);
    for (const failures of [undefined, 0, 1, 2]) {
      const range = open.take(100);
      if (range === null) throw new Error('nothing open');
      expect(range.failures).toBe(failures);
      open.giveBackFailed(range);
    }
  });
});
