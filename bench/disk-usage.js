'use strict';

/** Bytes on disk of a stack's data directory, from the lengths of its files. */
const fs = require('node:fs');
const path = require('node:path');

/** Kinds of objects by their key (docs/design/journal.md#object-names). */
const KINDS = [
  [/^batches\/[^/]+\/plans\//, 'plan'],
  [/^batches\/[^/]+\/journal\//, 'journal segments'],
  [/^batches\/[^/]+\/seals\//, 'seals'],
  [/^batches\//, 'other objects of the batch'],
  [/^files\//, 'input and result files'],
];

/** Bytes of all objects of a stack with a filesystem store, by kind. */
function objectBytes(dataDir) {
  const root = path.join(dataDir, 'objects', 'objects');
  const sums = {};
  for (const file of filesBelow(root)) {
    const key = path.relative(root, file);
    const kind = KINDS.find(([pattern]) => pattern.test(key))?.[1] ?? 'other';
    sums[kind] = (sums[kind] ?? 0) + sizeOf(file);
  }
  return sums;
}

/** Bytes of all files below a folder. */
function folderBytes(folder) {
  return filesBelow(folder).reduce((sum, file) => sum + sizeOf(file), 0);
}

function filesBelow(folder) {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
}

/** 0 if the file was removed meanwhile, as temporary ones are. */
function sizeOf(file) {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

module.exports = { folderBytes, objectBytes };
