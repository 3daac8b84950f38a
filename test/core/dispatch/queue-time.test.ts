import fc from 'fast-check';
import { queueTimeMs } from '../../../core/dispatch/queue-time';

describe('the time in the queue of a gateway', () => {
  it.each([
    [null, null],
    ['', null],
    ['queue;dur=0', 0],
    ['queue;dur=12.5', 12.5],
    ['Queue ; Dur = 7', 7],
    ['queue;dur="8"', 8],
    ['cache;desc="a, queue;dur=9", queue;desc="held; long";dur=5', 5],
    ['db;dur=3, queue;dur=4, queue;dur=6', 4],
    ['queue', null],
    ['queue;desc=long', null],
    ['queue;dur=', null],
    ['queue;dur=-1', null],
    ['queue;dur=1e3', null],
    ['queue;dur=Infinity', null],
    ['queue;dur=soon;dur=3', null],
    ['enqueue;dur=3', null],
    [`queue;dur=3, ${'x'.repeat(3_000)}`, null],
  ])('in the header %j is %s ms', (header, expected) => {
    expect(queueTimeMs(header)).toBe(expected);
  });

  it('is never negative or infinite, whatever a gateway sends', () => {
    const piece = fc.constantFrom(
      'queue',
      ';',
      ',',
      '=',
      '"',
      '\\',
      'dur',
      '1',
      '.',
      ' ',
      'e',
      '-',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60, size: 'max' }), (pieces) => {
        const ms = queueTimeMs(pieces.join(''));
        if (ms !== null) expect(ms >= 0 && Number.isFinite(ms)).toBe(true);
      }),
    );
  });
});
