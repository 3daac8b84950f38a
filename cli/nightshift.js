#!/usr/bin/env node
'use strict';

/**
 * The executable. A fresh clone has no packages and no `dist/`: both are made here, with Node alone,
 * before the first line of TypeScript runs.
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
