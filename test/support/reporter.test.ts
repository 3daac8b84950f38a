interface Reporter {
  countsOf(results: object): { passed: number; failed: number; skipped: number };
}
const { countsOf } = jest.requireActual<Reporter>('./reporter.js');

describe('the count of a Jest run', () => {
  const clean = {
    numPassedTests: 3,
    numFailedTests: 0,
    numPendingTests: 1,
    numTodoTests: 1,
    numRuntimeErrorTestSuites: 0,
    wasInterrupted: false,
  };

  it('is what Jest says of its tests, todos being skipped', () => {
    expect(countsOf(clean)).toEqual({ passed: 3, failed: 0, skipped: 2 });
  });

  it.each([
    ['a failed test', { numFailedTests: 1 }],
    ['a suite that could not run', { numRuntimeErrorTestSuites: 1 }],
    ['an interruption', { wasInterrupted: true }],
    ['an error outside of tests', { runExecError: { message: 'no' } }],
  ])('has a failure for %s', (_what, trouble) => {
    expect(countsOf({ ...clean, ...trouble })).toEqual({ passed: 3, failed: 1, skipped: 2 });
  });
});
