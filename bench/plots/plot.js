'use strict';

/** Plots of results: what they show, kept in the JSON of a result, and their drawing as SVG. */
const fs = require('node:fs');
const path = require('node:path');
const { isDisturbed } = require('../calm');
const { groupsOf, rangeOf } = require('../summary');
const { drawBars } = require('./bars');
const { drawPoints } = require('./points');

/** @typedef {{ kind: 'bars' | 'points', title: string } & Record<string, unknown>} Plot */

/**
 * A bar for each contender in each group of runs.
 *
 * @param {object[]} runs with `who`
 * @param {{ title: string, unit: string, value: string, group: (run: object) => string, max?: number }} shape
 *   `value` names the column
 * @param {object} bench
 * @returns {Plot}
 */
function barPlot(runs, { title, unit, value, group, max }, bench) {
  const named = runs.map((run) => ({ ...run, group: group(run) }));
  const groups = groupsOf(named, ['group']).map((members) => ({
    name: members[0].group,
    bars: groupsOf(members, ['who']).map((own) => ({
      name: own[0].who,
      isOwn: own[0].who === 'Nightshift',
      ...(own.some((run) => isDisturbed(run, bench)) ? {} : { range: rangeOf(own, value) }),
    })),
  }));
  return { kind: 'bars', title, unit, groups, ...(max === undefined ? {} : { max }) };
}

/**
 * A line for each column, over another column; points of disturbed runs are missing.
 *
 * @param {object[]} runs
 * @param {{ title: string, unit: string, x: string, xLabel: string, values: Record<string, string> }} shape columns by
 *   the names of their lines
 * @param {object} bench
 * @returns {Plot}
 */
function pointPlot(runs, { title, unit, x, xLabel, values }, bench) {
  const calm = groupsOf(runs, [x]).filter((group) => !group.some((run) => isDisturbed(run, bench)));
  const series = Object.entries(values).map(([name, column]) => ({
    name,
    points: calm.map((group) => ({ x: group[0][x], range: rangeOf(group, column) })),
  }));
  return { kind: 'points', title, unit, xLabel, series };
}

/** @param {string} dir @param {import('../report').Result} result its plot becomes `row-<row>.svg`, if it has one */
function writePlot(dir, { row, plot }) {
  if (plot === undefined) return;
  const draw = { bars: drawBars, points: drawPoints }[plot.kind];
  fs.mkdirSync(dir, { recursive: true });
  fs.writeFileSync(path.join(dir, `row-${row}.svg`), draw(plot));
}

module.exports = { barPlot, pointPlot, writePlot };
