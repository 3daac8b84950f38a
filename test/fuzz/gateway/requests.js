'use strict';

/*
 * What is sent to a gateway: { kind, method, path, headers, body, isChunked, leave }, or { kind: 'raw', bytes, leave }
 * for a bare socket. `leave` says when the client hangs up: after the request, in the middle of its body, at the first
 * byte of the answer, or not at all (null).
 */
const { hostileFields } = require('../requests.js');
const { damaged, json, stringify, text } = require('../values.js');
const { INDEX } = require('./origin.js');

const PATHS = ['chat/completions', 'completions', 'embeddings', 'responses', 'moderations'];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function makeRequest(random, { index, token }) {
  return random.weighted([
    [60, () => call(random, { index, token })],
    [10, () => ({ ...call(random, { index, token }), body: brokenBody(random), kind: 'broken' })],
    [6, () => strange(random)],
    [5, () => foreign(random, { index, token })],
    [9, () => raw(random, { index, token })],
    [10, () => ({ ...call(random, { index, token }), leave: random.pick(LEAVES), kind: 'left' })],
  ]);
}

const LEAVES = ['sent', 'amid', 'head'];

function call(random, { index, token }) {
  const path = `/v1/${random.pick(PATHS)}${random.pick(['', '', '', '?a=%20', '/'])}`;
  const members = [
    ['model', random.pick(['m', 'm', 'm', 'é', 'x'.repeat(300)])],
    ['messages', json(random)],
    ...(random.chance(0.4) ? [['stream', random.pick([true, false, 'x'])]] : []),
    ...(random.chance(0.3) ? [['max_tokens', random.pick([1, 0, -5, 1e308, '9', null])]] : []),
    ...(random.chance(0.3) ? [['service_tier', random.pick(['priority', 'flex', 'x', 1])]] : []),
    ...(random.chance(0.2) ? [['prompt', 'p'.repeat(random.between(0, 60_000))]] : []),
    ...random.list(2, () => [text(random), json(random)]),
  ];
  const blanks = random.pick(['', ' ', '\n\t ']);
  const body = Buffer.from(blanks + stringify({ members }) + blanks);
  const headers = { 'content-type': 'application/json', ...fields(random, token), [INDEX]: index };
  return { kind: 'call', method: 'POST', path, headers, body, isChunked: random.chance(0.3) };
}

function fields(random, token) {
  const chosen = {};
  const some = (name, values) => {
    if (random.chance(0.15)) chosen[name] = random.pick(values);
  };
  some('authorization', [`Bearer ${token}`, `Bearer ${token}`, 'Bearer other', 'x']);
  some('x-gateway-inference-objective', ['realtime', 'batch', '__proto__', '']);
  some('x-gateway-inference-fairness-id', ['acme', 'bolt', 'é', '']);
  some('x-nightshift-priority', ['2', '4', '9']);
  some('x-nightshift-prefix', ['0123abcd', 'x']);
  some('x-nightshift-dropped', ['evicted']);
  some('x-slo-ttft-ms', ['60000', '60000', '-1', 'x']);
  some('x-request-id', ['a-1', 'x'.repeat(700), 'b b']);
  some('connection', ['x-other', 'close', 'x-request-id, authorization']);
  some('expect', ['100-continue']);
  some('accept-encoding', ['gzip', 'br;q=1']);
  some('te', ['trailers']);
  some('x-other', ['1', 'é']);
  return chosen;
}

function brokenBody(random) {
  const whole = Buffer.from(
    stringify({
      members: [
        ['model', 'm'],
        ['messages', json(random)],
      ],
    }),
  );
  return random.weighted([
    [4, () => damaged(random, whole)],
    [2, () => Buffer.from(stringify(json(random)))],
    [1, () => Buffer.from('['.repeat(random.between(1, 40_000)))],
    [
      1,
      () => Buffer.from(random.pick(['', ' ', '\0', '{"model":"m"}{"model":"m"}', '{"model":1}'])),
    ],
    [1, () => random.bytes(random.between(1, 300))],
  ]);
}

function strange(random) {
  const words = () => encodeURIComponent(text(random).toWellFormed());
  const path = random.pick([
    '/v1/models',
    '/v1/models',
    `/v1/${words()}`,
    `/${words()}`,
    '//',
    '/%',
  ]);
  return { kind: 'strange', method: random.pick(METHODS), path, headers: {}, body: null };
}

/** A request that a foreign web page could send. */
function foreign(random, ids) {
  const request = call(random, ids);
  const from = random.pick([
    { host: 'rebound.example' },
    { origin: random.pick(['https://evil.example', 'null', 'http://127.0.0.1', 'file://']) },
    { 'sec-fetch-site': 'cross-site' },
  ]);
  return { ...request, kind: 'foreign', headers: { ...request.headers, ...from } };
}

function raw(random, ids) {
  const { method, path, headers, body } = call(random, ids);
  const lines = Object.entries({ host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  lines.push(`content-length: ${body.length + random.pick([0, 0, 0, 5, -1])}\r\n`);
  const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  const whole = Buffer.concat([head, body]);
  const bytes = random.weighted([
    [1, () => random.bytes(random.between(1, 200))],
    [4, () => damaged(random, whole)],
    [2, () => Buffer.concat([whole, whole])],
    [
      2,
      () => Buffer.concat([head.subarray(0, -2), hostileFields(random), Buffer.from('\r\n'), body]),
    ],
  ]);
  return { kind: 'raw', bytes, leave: random.pick(['wait', 'end', 'destroy']) };
}

module.exports = { makeRequest };
