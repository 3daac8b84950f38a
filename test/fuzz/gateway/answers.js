'use strict';

/*
 * How the model server behind the gateway answers: a pure function of the request's index, known to the client that
 * judges what arrives. { status, headers, chunks, gapMs, end }, where `end` is `whole`, `cut` in the middle of the body,
 * `silent` (no answer, the connection is closed) or `noise` (bytes that are not HTTP).
 */
const { randomFor } = require('../random.js');
const { text } = require('../values.js');

/** Marks answers of the model server. */
const MARK = 'x-fuzz-origin';
/** Apart from the sequence that makes the request. */
const SALT = 77_777;

function answerOf(seed, index) {
  const random = randomFor(seed + SALT, index);
  const kind = random.weighted([
    [6, () => json],
    [4, () => stream],
    [1, () => large],
    [2, () => failure],
    [1, () => empty],
  ]);
  const answer = kind(random);
  const end = random.weighted([
    [20, () => 'whole'],
    // An answer without a body ends with its head.
    [1, () => (answer.status === 204 ? 'whole' : 'cut')],
    [1, () => 'silent'],
    [0.3, () => 'noise'],
  ]);
  const isTold = random.chance(0.5) && end !== 'cut' && answer.status !== 204;
  const length = Buffer.concat(answer.chunks).length;
  const own = isTold ? [['content-length', String(length)]] : [];
  return {
    ...answer,
    end,
    headers: [[MARK, '1'], ...answer.headers, ...own, ...oddFields(random)],
  };
}

const JSON_FIELD = ['content-type', 'application/json'];

function json(random) {
  const usage = { prompt_tokens: random.between(0, 99), completion_tokens: random.between(0, 99) };
  const odd = random.pick([usage, null, { prompt_tokens: -1 }, 'x']);
  const body = Buffer.from(JSON.stringify({ a: text(random), usage: odd }));
  return { status: random.pick([200, 200, 201]), headers: [JSON_FIELD], chunks: [body], gapMs: 0 };
}

function stream(random) {
  const events = random.list(6, () => Buffer.from(`data: ${JSON.stringify(text(random))}\n\n`));
  const ends = random.pick([['data: [DONE]\n\n'], ['data: {"usage":{"prompt_tokens":1}}\n\n'], []]);
  const chunks = [...events, ...ends.map((end) => Buffer.from(end))];
  const headers = [['content-type', 'text/event-stream']];
  return { status: 200, headers, chunks, gapMs: random.between(0, 5) };
}

function large(random) {
  const chunks = [random.bytes(64), Buffer.alloc(random.between(1, 400_000), 'y')];
  return { status: 200, headers: [['content-type', 'x/y']], chunks, gapMs: 0 };
}

function failure(random) {
  const status = random.pick([400, 404, 418, 429, 500, 502, 503, 504, 529, 599]);
  const chunks = [Buffer.from(random.pick(['', 'no', '{"error":{"code":"evicted"}}']))];
  return { status, headers: [JSON_FIELD], chunks, gapMs: 0 };
}

function empty(random) {
  return { status: random.pick([200, 204]), headers: [], chunks: [], gapMs: 0 };
}

/** Fields that a careless proxy takes for its own, or loses. */
function oddFields(random) {
  return random.list(3, () =>
    random.pick([
      ['x-nightshift-dropped', 'evicted'],
      ['X-Nightshift-Other', '1'],
      ['x-request-id', 'of-the-server'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['server-timing', 'queue;dur=9'],
      ['x-latin', 'é'],
      ['x-empty', ''],
      ['x-long', 'z'.repeat(3_000)],
    ]),
  );
}

module.exports = { answerOf, MARK };
