import fc from 'fast-check';
import { AudioLog } from '../../../../core/audio/realtime/audio-log';

const bytes = (length: number, value = 0) => new Uint8Array(length).fill(value);

function sent(log: AudioLog): (number | 'commit')[] {
  const frames: (number | 'commit')[] = [];
  for (let frame = log.next(); frame !== null; frame = log.next()) {
    frames.push('commit' in frame ? 'commit' : frame.audio.length);
  }
  return frames;
}

describe('the audio log', () => {
  it('sends audio and ends of items in order, and again from the last final text', () => {
    const log = new AudioLog(10_000);
    log.append(bytes(100));
    log.commit();
    log.append(bytes(200));
    expect(sent(log)).toEqual([100, 'commit', 200]);
    log.forget(150);
    log.rewind();
    expect(log.start).toBe(150);
    expect(sent(log)).toEqual(['commit', 150]);
  });

  it('keeps the end of an item whose audio is final', () => {
    const log = new AudioLog(10_000);
    log.append(bytes(100));
    log.commit();
    sent(log);
    log.forget(100);
    log.rewind();
    expect(sent(log)).toEqual(['commit']);
    log.commitDone();
    log.rewind();
    expect(log.hasNext).toBe(false);
  });

  it('ends an item that the worker ended by itself when the audio is sent again', () => {
    const log = new AudioLog(10_000);
    log.append(bytes(100));
    log.append(bytes(100));
    sent(log);
    log.commitSent(100);
    expect(log.hasNext).toBe(false);
    log.rewind();
    expect(sent(log)).toEqual([100, 'commit', 100]);
  });

  it('drops the oldest of what was sent, and nothing of what was not', () => {
    const log = new AudioLog(300);
    for (let i = 0; i < 5; i++) log.append(bytes(100));
    expect(log.start).toBe(0);
    sent(log);
    log.rewind();
    expect(log.start).toBe(200);
  });

  it('sends what follows a clear only to the next stream', () => {
    const log = new AudioLog(10_000);
    log.append(bytes(100));
    log.commit();
    log.append(bytes(200));
    log.clear();
    log.append(bytes(300));
    log.commit();
    log.clear();
    expect(sent(log)).toEqual([100, 'commit']);
    log.commitDone();
    log.rewind();
    expect(sent(log)).toEqual([300, 'commit']);
  });

  it('loses no byte that a worker must still get, whatever happens', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('append' as const), n: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constantFrom('commit', 'next', 'next', 'rewind', 'done'), n: fc.nat() }),
      fc.record({ kind: fc.constant('forget' as const), n: fc.nat(300) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const log = new AudioLog(1_000_000);
        let [forgotten, commits, at] = [0, 0, 0];
        for (const { kind, n } of steps) {
          if (kind === 'append') log.append(bytes(n));
          else if (kind === 'commit') {
            log.commit();
            commits++;
          } else if (kind === 'next') {
            const frame = log.next();
            if (frame !== null && 'audio' in frame) at += frame.audio.length;
          } else if (kind === 'rewind') {
            log.rewind();
            at = log.start;
          } else if (kind === 'forget') {
            log.forget(Math.min(n, at));
            forgotten = Math.max(forgotten, Math.min(n, at));
          } else {
            const end = log.commitDone();
            if (end !== null) commits--;
            forgotten = Math.max(forgotten, end ?? 0);
          }
        }
        log.rewind();
        const again = sent(log);
        const audio = again.filter((one) => one !== 'commit').reduce((sum, one) => sum + one, 0);
        expect(again.filter((one) => one === 'commit')).toHaveLength(commits);
        expect(audio).toBeGreaterThanOrEqual(log.end - forgotten);
      }),
      { numRuns: 2_000 },
    );
  });
});
