'use strict';

/**
 * Jest's order of test files: those below first, the longest at the front. Otherwise a long file that starts
 * late would run alone while the other workers are idle. By itself Jest uses the durations in its cache,
 * which a new clone does not have.
 */
const path = require('node:path');
const Sequencer = require('@jest/test-sequencer').default;

const ROOT = path.resolve(__dirname, '../..');

/** Seconds of the slow files, as `npm test` prints them. Only their order matters. */
const SLOW_SECONDS = {
  'test/e2e/reconcile.test.ts': 87,
  'test/faults/freeze.test.ts': 83,
  'test/faults/freeze-ingestion.test.ts': 82,
  'test/faults/timed/schedule.test.ts': 67,
  'test/e2e/full-disk.test.ts': 65,
  'test/faults/timed/cut-off.test.ts': 64,
  'test/e2e/ends.test.ts': 61,
  'test/faults/kill.test.ts': 61,
  'test/e2e/gateway-changes.test.ts': 55,
  'test/e2e/outages.test.ts': 53,
  'test/e2e/package.test.ts': 39,
  'test/faults/poison.test.ts': 39,
  'test/e2e/long.test.ts': 38,
  'test/e2e/contract.test.ts': 36,
  'test/faults/shutdown.test.ts': 34,
  'test/e2e/contract-wire.test.ts': 30,
  'test/e2e/recovery.test.ts': 25,
  'test/e2e/backup.test.ts': 22,
  'test/e2e/slow.test.ts': 21,
  'test/e2e/upgrade.test.ts': 21,
  'test/e2e/metrics.test.ts': 21,
  'test/workflows/maintenance-workflow.test.ts': 21,
  'test/storage/objects/s3/s3-store.test.ts': 20,
  'test/e2e/answers.test.ts': 20,
  'test/e2e/contract-batches.test.ts': 19,
  'test/storage/postgres/progress-outages.test.ts': 18,
  'test/workflows/batch-workflow.test.ts': 16,
  'test/e2e/gateways.test.ts': 13,
  'test/e2e/batches.test.ts': 13,
  'test/e2e/several-hosts.test.ts': 13,
  'test/e2e/endpoints.test.ts': 12,
  'test/storage/journal/object-journal.test.ts': 10,
  'test/e2e/large.test.ts': 10,
};

class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort([...tests]).sort((a, b) => secondsOf(b) - secondsOf(a));
  }
}

function secondsOf(test) {
  const name = path.relative(ROOT, test.path).split(path.sep).join('/');
  return SLOW_SECONDS[name] ?? 0;
}

module.exports = LongestFirst;
module.exports.SLOW_SECONDS = SLOW_SECONDS;
