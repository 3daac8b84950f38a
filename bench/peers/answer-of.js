'use strict';

/** What the undici loop and the job queue do with a line: send its body, wait for the whole answer, give a result line. */
const { Pool } = require('undici');

/** @param {{ origin: string, inFlight: number }} options */
function createSender({ origin, inFlight }) {
  const pool = new Pool(origin, { connections: inFlight, pipelining: 1 });
  const headers = { 'content-type': 'application/json' };
  return {
    /** @param {string} text a line of the input @returns {Promise<string>} the line of its result */
    async answer(text) {
      const line = JSON.parse(text);
      const { statusCode, body } = await pool.request({
        path: line.url,
        method: 'POST',
        headers,
        body: JSON.stringify(line.body),
      });
      const response = { status_code: statusCode, body: await body.json() };
      if (statusCode !== 200) throw new Error(`the model server answered ${statusCode}`);
      return JSON.stringify({ custom_id: line.custom_id, response, error: null });
    },
    close: () => pool.close(),
  };
}

module.exports = { createSender };
