'use strict';

/** The modules of the built product that make and finalize a batch without a server. */
const path = require('node:path');

/** @param {string} root the checkout that is measured */
function loadProduct(root) {
  const load = (file) => require(path.join(root, 'dist', file));
  return {
    ...load('activities/finalize/finalize.js'),
    ...load('activities/finalize/result-drafts.js'),
    ...load('core/batch/counts.js'),
    ...load('core/journal/frame.js'),
    ...load('core/names/ids.js'),
    ...load('core/names/object-names.js'),
    ...load('core/openai/result-line.js'),
    ...load('core/plan/model-map.js'),
    ...load('core/plan/plan-entry.js'),
    ...load('storage/journal/filesystem-journal.js'),
    ...load('storage/open-storage.js'),
    ...load('storage/objects/filesystem-layout.js'),
  };
}

/** The batch of row 10: one in each folder. */
const BATCH = {
  id: `batch_${'0123456789abcdef'.repeat(2)}`,
  nonce: 'aaaabbbbccccdddd',
  inputKey: 'files/bench/file-input',
  tenantFolder: 'bench',
};

module.exports = { BATCH, loadProduct };
