#!/usr/bin/env node
'use strict';

/**
 * The executable. A fresh clone has neither packages nor `dist/`. Both are prepared here with plain Node,
 * before any compiled TypeScript is loaded.
 */
const { ensureBuilt, ensureInstalled, ensureNode } = require('./prepare');

try {
  ensureNode();
  ensureInstalled();
  ensureBuilt();
} catch (error) {
  process.stderr.write(`nightshift: ${error.message}\n`);
  process.exit(1);
}
void require('../dist/cli/main.js').main();
