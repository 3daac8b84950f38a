'use strict';

/**
 * Replaces `fc.assert` in the test files of `npm run properties`: a property has its number of runs multiplied, uses
 * the seed of the command instead of its own, ends after a time limit, and writes what happened to a log.
 */
const fs = require('node:fs');
const path = require('node:path');

const { times, seed, path: firstRun, limitMs, log } = JSON.parse(process.env.NIGHTSHIFT_PROPERTIES);
/** The number of runs that fast-check uses by default. */
const USUAL_RUNS = 100;

jest.mock('fast-check', () => {
  const real = jest.requireActual('fast-check');
  const assert = (property, parameters) => real.assert(property, more(real, parameters));
  return { __esModule: true, ...real, default: { ...real.default, assert } };
});

function more(fc, parameters = {}) {
  return {
    ...parameters,
    seed,
    ...(firstRun === undefined
      ? { numRuns: (parameters.numRuns ?? USUAL_RUNS) * times }
      : { path: firstRun, numRuns: 1 }),
    interruptAfterTimeLimit: limitMs,
    reporter: (details) => {
      note(details);
      if (!details.failed) return;
      throw new Error(fc.defaultReportMessage(details), { cause: details.errorInstance });
    },
  };
}

function note({ failed, interrupted, numRuns, counterexamplePath }) {
  const { testPath, currentTestName } = expect.getState();
  const file = path.relative(process.cwd(), testPath);
  // Only the index of the run: the repeated run shrinks its counterexample again.
  const replayPath = counterexamplePath?.split(':')[0];
  const line = { file, title: currentTestName, failed, interrupted, numRuns, path: replayPath };
  fs.appendFileSync(log, `${JSON.stringify(line)}\n`);
}
