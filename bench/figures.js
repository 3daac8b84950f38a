'use strict';

/** Statistics of measured values. */

/** The median. */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return Number.isInteger(middle)
    ? (sorted[middle - 1] + sorted[middle]) / 2
    : sorted[Math.floor(middle)];
}

/** The smallest value that at least `share` of all values do not exceed: 0 the least, 1 the largest. */
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** @param {number} digits after the point */
function rounded(value, digits = 0) {
  return Number(value.toFixed(digits));
}

/** The median as text, with the least and the largest of several values. */
function spread(values, { unit = '', digits = 0 } = {}) {
  const shown = (value) => `${rounded(value, digits)}${unit}`;
  if (values.length === 1) return shown(values[0]);
  return `${shown(median(values))} (${shown(Math.min(...values))} to ${shown(Math.max(...values))})`;
}

/** A share as text: 0.953 is `95.3 %`. */
function percent(share) {
  return `${(share * 100).toFixed(1)} %`;
}

/** How disturbed a run was, as every result says it beside its figure. */
function disturbance({ load1, othersCores }) {
  return { load1: rounded(load1, 1), 'others, cores': rounded(othersCores, 2) };
}

module.exports = { disturbance, median, percent, quantile, rounded, spread };
