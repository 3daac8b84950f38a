'use strict';

/**
 * Writes the counts of a Jest run to the file named by NIGHTSHIFT_TEST_COUNTS, which `test/run.js` adds
 * up. A suite that could not run counts as one failed test.
 */
const fs = require('node:fs');

class CountsReporter {
  onRunComplete(_contexts, results) {
    const file = process.env.NIGHTSHIFT_TEST_COUNTS;
    if (file) fs.writeFileSync(file, JSON.stringify(countsOf(results)));
  }
}

/** @returns {{ passed: number, failed: number, skipped: number }} */
function countsOf(results) {
  const broken = results.numRuntimeErrorTestSuites + (results.runExecError ? 1 : 0);
  const unfinished = results.wasInterrupted ? 1 : 0;
  return {
    passed: results.numPassedTests,
    failed: results.numFailedTests + broken + unfinished,
    skipped: results.numPendingTests + results.numTodoTests,
  };
}

module.exports = CountsReporter;
module.exports.countsOf = countsOf;
