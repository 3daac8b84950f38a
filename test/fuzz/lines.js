'use strict';

const { json, object, stringify, text, damaged } = require('./values.js');

const URLS = ['/v1/chat/completions', '/v1/embeddings', '/v1/completions', '/v1/responses'];

function good(random, index) {
  const body = {
    model: 'm',
    messages: [{ role: 'user', content: text(random) }],
    input: 'x',
    prompt: 'x',
  };
  return { custom_id: `c-${index}`, method: 'POST', url: '/v1/chat/completions', body };
}

/** One line of a batch file: good, nearly good, or anything. */
function line(random, index) {
  return random.weighted([
    [6, () => JSON.stringify(good(random, index))],
    [3, () => nearlyGood(random, index)],
    [1, () => stringify(object(random, ['custom_id', 'method', 'url', 'body']))],
    [1, () => stringify(json(random))],
    [
      1,
      () => random.pick(['', '   ', '\r', '[', '{"a":1}{"b":2}', '"', '\ufeff', '{"custom_id":']),
    ],
    [1, () => damaged(random, Buffer.from(JSON.stringify(good(random, index)))).toString('latin1')],
  ]);
}

function nearlyGood(random, index) {
  const request = good(random, index);
  const where = random.chance(0.5) ? request : request.body;
  const name = random.pick([...Object.keys(where), 'stream', 'custom_id', text(random)]);
  if (name === '__proto__') return '{"__proto__":1}';
  random.weighted([
    [1, () => delete where[name]],
    [2, () => (where[name] = JSON.parse(stringify(json(random, 1))))],
    [1, () => (request.url = random.pick(URLS))],
    [1, () => (request.body.model = random.pick(['m', 'n', '日本', 'x'.repeat(300), '..', 'a/b']))],
    [
      1,
      () => (request.custom_id = random.pick(['c-0', 'é', 'e\u0301', ' ', '1', 'x'.repeat(513)])),
    ],
  ]);
  return JSON.stringify(request);
}

/** A batch file; half of them hold nothing but good lines. */
function batchFile(random) {
  const isGood = random.chance(0.5);
  const count = random.between(isGood ? 1 : 0, 12);
  const lines = Array.from({ length: count }, (_, index) =>
    isGood ? JSON.stringify(good(random, index)) : line(random, index),
  );
  const end = random.pick(['\n', '\r\n', '\n\n']);
  const bytes = Buffer.from(
    random.pick(['', '', '', '\ufeff']) + lines.join(end) + random.pick(['', end]),
  );
  return isGood ? bytes : damaged(random, bytes);
}

module.exports = { batchFile };
