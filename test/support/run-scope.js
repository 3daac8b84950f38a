'use strict';

/**
 * Jest's global setup: one scratch folder per Jest run, known to every test process by the
 * variable NIGHTSHIFT_TEST_RUN. Servers that test files share keep their files in it (see once-per-run.ts).
 */
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

module.exports = async function openRun() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-test-'));
  // A server may run as another user and must reach its own files below this folder.
  fs.chmodSync(folder, 0o755);
  process.env.NIGHTSHIFT_TEST_RUN = folder;
  process.env.NIGHTSHIFT_TEST_OWNER_PID = String(process.pid);
};
