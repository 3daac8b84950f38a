'use strict';

/** Prints results as tables on stdout and writes them as JSON to a file. */
const fs = require('node:fs');
const { isDisturbed } = require('./calm');

/**
 * @typedef {object} Verdict
 * @property {string} what
 * @property {string} value
 * @property {string} must
 * @property {string} aim
 * @property {boolean} met
 * @property {Record<string, unknown>[]} [from] the runs that it comes from; all of the row if absent
 */

/**
 * @typedef {object} Result the result of a row
 * @property {number | string} row as in docs/benchmarks.md
 * @property {string} title
 * @property {Verdict[]} verdicts
 * @property {Record<string, unknown>[]} runs one object per measured run, all with the same keys
 * @property {Record<string, unknown>[]} [summary] medians and spread of the runs
 * @property {import('./plots/plot').Plot} [plot]
 */

/**
 * A result without the verdicts that a disturbed run would have decided.
 *
 * @param {Result} result
 * @param {{ calmCores: number }} bench
 * @returns {Result}
 */
function settled(result, bench) {
  const verdicts = result.verdicts.map(({ from = result.runs, ...verdict }) =>
    from.some((run) => isDisturbed(run, bench))
      ? { ...verdict, value: 'disturbed', met: null }
      : verdict,
  );
  return { ...result, verdicts };
}

/** @param {Result} result */
function printResult({ row, title, verdicts, runs, summary = [] }) {
  const lines = [`\n## Row ${row}: ${title}`];
  if (runs.length > 0) lines.push('', table(runs));
  if (summary.length > 0) lines.push('', table(summary));
  if (verdicts.length > 0) {
    const rows = verdicts.map(({ met, ...rest }) => ({ ...rest, 'must is met': isMet(rest, met) }));
    lines.push('', table(rows));
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

function isMet({ must }, met) {
  if (must === '' || met === null) return '';
  return met ? 'yes' : 'NO';
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

module.exports = { printResult, settled, table, writeJson };
