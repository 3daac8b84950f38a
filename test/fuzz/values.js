'use strict';

const STRANGE = [
  ...['', ' ', '\0', '\n', '\r\n', '\u2028', '\ufeff', '\ud800', 'é', '日本', '💥', '__proto__'],
  ...['constructor', '../../etc/passwd', '%00', '%2e%2e%2f', "';--", '<b>', '-1', '0', '1e400'],
  ...['9007199254740993', 'null', 'true', '{}', '[]', 'batch', 'created_at', '24h', '1s', '31d'],
  ...['/v1/chat/completions', '/v1/responses', 'user_data', 'x'.repeat(600), 'y'.repeat(5_000)],
];

/** Any text, mostly short, often one that breaks careless programs. */
function text(random) {
  return random.weighted([
    [4, () => random.pick(STRANGE)],
    [3, () => String.fromCodePoint(...random.list(12, () => random.between(0x20, 0x7e)))],
    [2, () => String.fromCharCode(...random.list(12, () => random.between(0, 0xffff)))],
    [1, () => random.bytes(random.between(0, 40)).toString('latin1')],
  ]);
}

/** Any JSON value, as deep as `depth`. */
function json(random, depth = 3) {
  const simple = [
    [4, () => text(random)],
    [1, () => random.pick([null, true, false])],
    [
      2,
      () => random.pick([0, -1, 1, 0.5, 1e308, 2 ** 53, 3600, 2592001, random.between(-9e9, 9e9)]),
    ],
  ];
  if (depth === 0) return random.weighted(simple);
  return random.weighted([
    ...simple,
    [1, () => random.list(4, () => json(random, depth - 1))],
    [1, () => object(random, [], depth - 1)],
  ]);
}

/** An object with some of `names` and some that nobody asked for. */
function object(random, names, depth = 2) {
  const members = random.list(4, () => [text(random), json(random, depth)]);
  for (const name of names) if (random.chance(0.6)) members.push([name, json(random, depth)]);
  // Not Object.fromEntries: a member `__proto__` must be one.
  return { members };
}

/** JSON text of what {@link json} and {@link object} made; sometimes with the same member twice. */
function stringify(value) {
  if (Array.isArray(value)) return `[${value.map(stringify).join(',')}]`;
  if (value?.members === undefined) return JSON.stringify(value) ?? 'null';
  const members = value.members.map(
    ([name, member]) => `${JSON.stringify(name)}:${stringify(member)}`,
  );
  return `{${members.join(',')}}`;
}

/** Bytes that were cut, flipped or stuffed on their way. */
function damaged(random, bytes) {
  let result = bytes;
  for (let i = random.between(0, 2); i > 0; i--) {
    const at = random.between(0, result.length);
    result = random.weighted([
      [1, () => result.subarray(0, at)],
      [2, () => Buffer.concat([result.subarray(0, at), random.bytes(4), result.subarray(at)])],
      [
        2,
        () => Buffer.concat([result.subarray(0, at), result.subarray(at + random.between(0, 9))]),
      ],
    ]);
  }
  return result;
}

module.exports = { text, json, object, stringify, damaged };
