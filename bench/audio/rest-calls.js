'use strict';

/** Calls to the audio routes of a gateway, over connections that stay open. */
const { Pool } = require('undici');
const { FORM_TYPE } = require('./recordings');

/** More than any row has open at once. */
const CONNECTIONS = 2_000;

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string>} headers
 * @property {Buffer} body
 * @property {number} ms from the call to the end of the body
 * @property {number} firstByteMs from the call to the first byte of the body
 * @property {number} atMs when the body ended, by `performance.now()`
 */

/** @param {string} address host and port of a gateway */
function openRestCalls(address) {
  const pool = new Pool(`http://${address}`, {
    connections: CONNECTIONS,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const send = (path, options) => exchange(pool, path, options);
  return {
    /** @param {Buffer | import('node:stream').Readable} form @returns {Promise<Answer>} */
    transcribe: (form, { headers = {}, signal } = {}) =>
      send('/v1/audio/transcriptions', {
        body: form,
        headers: { 'content-type': FORM_TYPE, ...headers },
        signal,
      }),
    /** @returns {Promise<Answer>} */
    speak: (body) =>
      send('/v1/audio/speech', {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    /** @returns {Promise<Answer>} */
    cancel: (requestId) =>
      send(`/v1/audio/transcriptions/${requestId}/cancel`, { body: '', headers: {} }),
    /** Ends all connections, and with them the requests that are open. */
    close: () => pool.destroy(),
  };
}

async function exchange(pool, path, { body, headers, signal }) {
  const startMs = performance.now();
  const answer = await pool.request({ path, method: 'POST', body, headers, signal });
  const pieces = [];
  let firstByteMs = null;
  for await (const piece of answer.body) {
    firstByteMs ??= performance.now() - startMs;
    pieces.push(piece);
  }
  const atMs = performance.now();
  const { statusCode: status } = answer;
  return {
    ...{ status, headers: answer.headers, body: Buffer.concat(pieces) },
    ...{ ms: atMs - startMs, firstByteMs: firstByteMs ?? atMs - startMs, atMs },
  };
}

/** The answer, if its status is 200. */
function expectOk(answer) {
  if (answer.status === 200) return answer;
  throw new Error(`${answer.status}: ${answer.body.toString().slice(0, 500)}`);
}

/** A duration of `Server-Timing`, ms. */
function timingOf({ headers }, name) {
  const found = new RegExp(`\\b${name};dur=([\\d.]+)`).exec(headers['server-timing'] ?? '');
  if (found === null) throw new Error(`no ${name} in Server-Timing: ${headers['server-timing']}`);
  return Number(found[1]);
}

module.exports = { expectOk, openRestCalls, timingOf };
