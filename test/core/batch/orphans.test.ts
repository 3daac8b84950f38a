import type { OrphanRow } from '../../../core/batch/orphans';
import { judgeOrphan } from '../../../core/batch/orphans';
import { STOP_CAUSES } from '../../../core/batch/status';

const NOW_SEC = 1_000_000;

function row(over: Partial<OrphanRow> = {}): OrphanRow {
  return {
    stopCause: null,
    stopTaken: false,
    startSeen: true,
    createdAtSec: NOW_SEC - 600,
    expiresAtSec: NOW_SEC + 600,
    cancellingAtSec: null,
    ...over,
  };
}

describe('an open row whose workflow is', () => {
  it('running needs nothing, even past its deadline: the workflow has its own timer', () => {
    expect(judgeOrphan(row(), 'running', NOW_SEC)).toEqual({ kind: 'none' });
    expect(judgeOrphan(row({ expiresAtSec: NOW_SEC - 5 }), 'running', NOW_SEC)).toEqual({
      kind: 'none',
    });
  });

  it.each([
    ['a cancel untaken for 15 s', { cancellingAtSec: NOW_SEC - 15 }, 'signal'],
    ['a fresh cancel', { cancellingAtSec: NOW_SEC - 14 }, 'none'],
    ['a cancel that was taken', { cancellingAtSec: NOW_SEC - 15, stopTaken: true }, 'none'],
  ])('running, with %s', (_what, over, kind) => {
    const cancelled = row({ stopCause: 'cancelled', ...over });
    expect(judgeOrphan(cancelled, 'running', NOW_SEC)).toEqual({ kind });
  });

  it('missing is started again, without a cause', () => {
    expect(judgeOrphan(row(), 'missing', NOW_SEC)).toEqual({ kind: 'start', claim: null });
  });

  it.each([
    [14, { kind: 'none' }],
    [15, { kind: 'start', claim: null }],
  ])('missing and never started is left to the API at first: %d s old', (age, verdict) => {
    const fresh = row({ startSeen: false, createdAtSec: NOW_SEC - age });
    expect(judgeOrphan(fresh, 'missing', NOW_SEC)).toEqual(verdict);
  });

  it('closed ends as failed', () => {
    expect(judgeOrphan(row(), 'closed', NOW_SEC)).toEqual({ kind: 'start', claim: 'failed' });
  });

  it.each(['missing', 'closed'] as const)('%s past its end expires', (workflow) => {
    const late = row({ expiresAtSec: NOW_SEC });
    expect(judgeOrphan(late, workflow, NOW_SEC)).toEqual({ kind: 'start', claim: 'expired' });
  });

  it.each(STOP_CAUSES)('gone keeps the cause that it has: %s', (stopCause) => {
    for (const workflow of ['missing', 'closed'] as const) {
      const stopped = row({ stopCause, expiresAtSec: NOW_SEC - 1 });
      expect(judgeOrphan(stopped, workflow, NOW_SEC)).toEqual({ kind: 'start', claim: null });
    }
  });
});
