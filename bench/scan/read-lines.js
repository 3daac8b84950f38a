'use strict';

/**
 * Reads a file with `readline` and parses its lines, six times, and prints the medians of all but the first as JSON:
 * `node bench/scan/read-lines.js FILE`. Events are the faster way of `readline`; it also has an iterator.
 */
const fs = require('node:fs');
const readline = require('node:readline');
const { measureWarm } = require('./measure');

async function main([file]) {
  const found = await measureWarm(() => readLines(file));
  process.stdout.write(JSON.stringify(found));
}

function readLines(file) {
  return new Promise((resolve, reject) => {
    let lines = 0;
    const input = fs.createReadStream(file).on('error', reject);
    const reader = readline.createInterface({ input, crlfDelay: Infinity });
    reader.on('line', (line) => {
      if (typeof JSON.parse(line).custom_id === 'string') lines++;
    });
    reader.on('close', () => resolve(lines));
  });
}

void main(process.argv.slice(2));
