'use strict';

/** Judges the median of the values that several runs found, and shows how far they lie apart. */
const { median, rounded } = require('./figures');

/**
 * @typedef {object} Bounds
 * @property {string} unit with a space before it if one belongs there
 * @property {number} must
 * @property {number} [aim] none if absent
 * @property {number} [digits] after the point
 */

/** @param {string} what @param {number[]} values @param {Bounds} bounds */
function atMost(what, values, bounds) {
  return judged(what, values, { ...bounds, sign: '≤', isMet: (value) => value <= bounds.must });
}

/** @param {string} what @param {number[]} values @param {Bounds} bounds */
function atLeast(what, values, bounds) {
  return judged(what, values, { ...bounds, sign: '≥', isMet: (value) => value >= bounds.must });
}

function judged(what, values, { unit, must, aim, digits = 2, sign, isMet }) {
  const shown = (value) => `${rounded(value, digits)}${unit}`;
  const spread = `${shown(Math.min(...values))} to ${shown(Math.max(...values))}`;
  const value = median(values);
  return {
    what,
    value: values.length === 1 ? shown(value) : `${shown(value)} (${spread})`,
    must: `${sign} ${must}${unit}`,
    aim: aim === undefined ? '' : `${sign} ${aim}${unit}`,
    met: isMet(value),
  };
}

module.exports = { atLeast, atMost };
