'use strict';

const { TestEnvironment } = require('jest-environment-node');

/** Longer than any test with one property that uses up its time limit. */
const TEST_LIMIT_MS = 30 * 60_000;

/** Node with one time limit for all tests: the limits in the test files are for the usual number of runs. */
module.exports = class PatientEnvironment extends TestEnvironment {
  handleTestEvent({ name, test }) {
    if (name === 'test_start') test.timeout = TEST_LIMIT_MS;
  }
};
