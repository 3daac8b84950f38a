'use strict';

/** A reproducible source of chance for one request of a run: the same seed and index, the same request. */
function randomFor(seed, index) {
  let state = (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (low, high) => low + Math.floor(next() * (high - low + 1));
  const pick = (from) => from[between(0, from.length - 1)];
  const chance = (probability) => next() < probability;
  const bytes = (length) => Buffer.from(Array.from({ length }, () => between(0, 255)));
  const list = (max, make) => Array.from({ length: between(0, max) }, make);
  /** One of the functions, each as likely as its weight says. */
  const weighted = (choices) => {
    let left = next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    return (choices.find(([weight]) => (left -= weight) < 0) ?? choices[0])[1]();
  };
  return { next, between, pick, chance, bytes, list, weighted };
}

module.exports = { randomFor };
