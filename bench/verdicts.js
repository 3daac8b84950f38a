'use strict';

/** Judges the median of the values that several runs found, and shows how far they lie apart. */
const { median, spread } = require('./figures');

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

/** A figure without a bound. @param {string} what @param {number[]} values @param {{ unit: string, digits?: number }} shape */
function figure(what, values, { unit, digits = 2 }) {
  return { what, value: spread(values, { unit, digits }), must: '', aim: '', met: true };
}

function judged(what, values, { unit, must, aim, digits = 2, sign, isMet }) {
  return {
    what,
    value: spread(values, { unit, digits }),
    must: `${sign} ${must}${unit}`,
    aim: aim === undefined ? '' : `${sign} ${aim}${unit}`,
    met: isMet(median(values)),
  };
}

module.exports = { atLeast, atMost, figure };
