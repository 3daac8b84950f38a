import { Readiness, type ProbeResult } from '../../../inference/proxy/readiness';

const OK: ProbeResult = { kind: 'status', status: 204 };
const UNWELL: ProbeResult = { kind: 'status', status: 503 };
const REFUSED: ProbeResult = { kind: 'refused' };
const SILENT: ProbeResult = { kind: 'silent', message: 'no answer within 1000 ms' };

/** Feeds probes every 2 s. @returns whether the backend is ready after each */
function probed(results: readonly ProbeResult[], answeredMs: readonly number[] = []): boolean[] {
  const readiness = new Readiness({ fall: 2, answerCountsMs: 4_000 });
  expect(readiness.isReady).toBe(false);
  return results.map((result, i) => {
    const nowMs = i * 2_000;
    for (const ms of answeredMs) if (ms <= nowMs && ms > nowMs - 2_000) readiness.onAnswered(ms);
    readiness.onProbed(result, nowMs);
    expect(readiness.reason === null).toBe(readiness.isReady);
    return readiness.isReady;
  });
}

describe('a backend', () => {
  it('becomes ready with its first success, and not before', () => {
    expect(probed([SILENT, UNWELL, OK])).toEqual([false, false, true]);
  });

  it('is not ready after two failures in a row, and ready again after one success', () => {
    expect(probed([OK, SILENT, OK, SILENT, UNWELL, OK])).toEqual([
      true,
      true,
      true,
      true,
      false,
      true,
    ]);
  });

  it('is not ready as soon as it refuses a connection, even while it answers', () => {
    expect(probed([OK, REFUSED, SILENT], [1_900])).toEqual([true, false, false]);
  });

  it('stays ready without answers to probes for two intervals after a real answer', () => {
    const results = [OK, SILENT, SILENT, SILENT, SILENT];
    expect(probed(results, [3_000])).toEqual([true, true, true, true, false]);
  });

  it('does not stay ready against explicit failures, whatever it answers', () => {
    expect(probed([OK, UNWELL, UNWELL], [1_900, 3_900])).toEqual([true, true, false]);
  });
});
