'use strict';

/** Medians and spread of runs, group by group. */
const { isDisturbed } = require('./calm');
const { median, spread } = require('./figures');

/**
 * @param {Record<string, unknown>[]} runs
 * @param {{ by: string[], columns: Record<string, number> }} shape names of the columns that make a group, and
 *   the digits after the point of those to summarize
 * @param {{ calmCores: number }} bench
 * @returns {Record<string, unknown>[]} a row for each group; a group with a disturbed run shows no figures
 */
function summarize(runs, { by, columns }, bench) {
  return groupsOf(runs, by).map((group) => {
    const row = Object.fromEntries(by.map((name) => [name, group[0][name]]));
    const isLost = group.some((run) => isDisturbed(run, bench));
    for (const [name, digits] of Object.entries(columns)) {
      row[name] = isLost ? 'disturbed' : spread(valuesOf(group, name), { digits });
    }
    return row;
  });
}

/**
 * What one contender makes of a column in relation to another one, for each round in which both ran.
 *
 * @param {Record<string, unknown>[]} runs with `who` and `round`
 * @param {{ column: string, of: string, to: string }} pair
 * @returns {{ ratios: number[], from: Record<string, unknown>[] }} `from` are the runs that count
 */
function pairedRatios(runs, { column, of, to }) {
  const from = runs.filter(({ who }) => who === of || who === to);
  const valueOf = (name, round) =>
    from.find((run) => run.who === name && run.round === round)?.[column];
  const rounds = [...new Set(from.map(({ round }) => round))];
  const ratios = rounds.map((round) => valueOf(of, round) / valueOf(to, round));
  return { ratios: ratios.filter(Number.isFinite), from };
}

/** Median, least and largest of a column, as plots show them. */
function rangeOf(runs, column) {
  const values = valuesOf(runs, column);
  return { median: median(values), low: Math.min(...values), high: Math.max(...values) };
}

/** Runs that agree in the columns `by`, in the order of their first appearance. */
function groupsOf(runs, by) {
  const groups = new Map();
  for (const run of runs) {
    const key = JSON.stringify(by.map((name) => run[name]));
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  return [...groups.values()];
}

function valuesOf(runs, column) {
  return runs.map((run) => run[column]).filter((value) => typeof value === 'number');
}

module.exports = { groupsOf, pairedRatios, rangeOf, summarize };
