'use strict';

/** Prints results as tables on stdout and writes them as JSON to a file. */
const fs = require('node:fs');

/**
 * @typedef {object} Result the result of a row
 * @property {number} row number in docs/benchmarks.md
 * @property {string} title
 * @property {{ what: string, value: string, must: string, aim: string, met: boolean }[]} verdicts
 * @property {Record<string, unknown>[]} runs one object per measured run, all with the same keys
 */

/** @param {Result} result */
function printResult({ row, title, verdicts, runs }) {
  const lines = [`\n## Row ${row}: ${title}\n`, table(runs)];
  if (verdicts.length > 0) {
    const rows = verdicts.map(({ met, ...rest }) => ({
      ...rest,
      'must is met': rest.must === '' ? '' : met ? 'yes' : 'NO',
    }));
    lines.push('', table(rows));
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** A Markdown table with aligned columns. */
function table(rows) {
  const names = Object.keys(rows[0] ?? {});
  const cells = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '')))];
  const widths = names.map((_, at) => Math.max(...cells.map((row) => row[at].length)));
  const line = (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`;
  const [head, ...body] = cells.map(line);
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n');
}

/** @param {string} file replaced as a whole */
function writeJson(file, document) {
  fs.writeFileSync(file, `${JSON.stringify(document, null, 2)}\n`);
}

module.exports = { printResult, table, writeJson };
