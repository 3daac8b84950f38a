'use strict';

/** The modules of the built product that ingest a file without a server. */
const path = require('node:path');

/** @param {string} root the checkout that is measured */
function loadProduct(root) {
  const load = (file) => require(path.join(root, 'dist', file));
  return {
    ...load('activities/ingest/outcome.js'),
    ...load('activities/ingest/scan-file.js'),
    ...load('activities/ingest/scan-gate.js'),
    ...load('core/openai/line-index.js'),
    ...load('platform/heap.js'),
    ...load('storage/open-storage.js'),
    ...load('storage/objects/filesystem-layout.js'),
  };
}

module.exports = { loadProduct };
