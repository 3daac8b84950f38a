'use strict';

/** Strings that break careless programs, as names of models, tenants, files and metadata. */
const EMOJI = '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}';
const CONTROLS = '\u0000\u0001\u0007\u001b[31m\u007f\u0085\u2028\u2029';

const MAKERS = [
  (random, chars) => '💥'.repeat(chars >> 1),
  (random, chars) => EMOJI.repeat(Math.ceil(chars / EMOJI.length)).slice(0, chars),
  (random, chars) => CONTROLS.repeat(chars).slice(0, chars),
  (random, chars) => '"\\'.repeat(chars).slice(0, chars),
  (random, chars) => '|`*_<b>[a](b)'.repeat(chars).slice(0, chars),
  (random, chars) => '\ud800'.repeat(chars),
  (random, chars) => '../'.repeat(chars).slice(0, chars),
  (random, chars) => `${'m'.repeat(chars - 1)}${random.pick(['.', '/', ' ', '\u0301'])}`,
  (random, chars) => '日本語モデル'.repeat(chars).slice(0, chars),
  (random) => random.pick(['__proto__', 'constructor', '.', '..', 'NUL', '%2e%2e%2f', 'default']),
  (random, chars) =>
    String.fromCharCode(...Array.from({ length: chars }, () => random.between(0, 0xffff))),
];

/** A hostile string of at most `most` UTF-16 units and at least one. */
function hostile(random, most) {
  const chars = random.chance(0.5) ? most : random.between(1, most);
  const text = random.pick(MAKERS)(random, Math.max(2, chars)).slice(0, most);
  return text === '' ? 'x' : text;
}

/** A header value as bytes in Latin-1, as Node sends them: UTF-8 without controls and edges of blanks. */
function hostileHeader(random, most) {
  const text = hostile(random, most)
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f-\u009f]/gu, 'c')
    .trim();
  return Buffer.from(text === '' ? 'x' : text).toString('latin1');
}

module.exports = { hostile, hostileHeader };
