'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { parsed } = require('../verdicts.js');
const { answerOf, MARK } = require('./answers.js');

const PAGE = path.resolve(__dirname, '..', '..', '..', 'docs', 'design', 'flow-control.md');
/** The statuses that the design page gives to each code, and those of faults of backends. */
const CODES = new Map([
  ...[...fs.readFileSync(PAGE, 'utf8').matchAll(/^\| `(\w+)` \| \w* ?\| (\d+) \|/gm)].map(
    ([, code, status]) => [code, Number(status)],
  ),
  ...[
    ['backend_unreachable', 502],
    ['backend_lost', 502],
    ['backend_timeout', 504],
  ],
]);
/** Bugs of the gateway, and what nobody is there to read. */
const NEVER = ['internal', 'client_closed'];

/** What is wrong with an answer, in words; null if nothing is. */
function faultOf(run, { kind, method, body, headers }, answer) {
  if (method === 'HEAD') return answer.body.length === 0 ? null : 'a HEAD with a body';
  const index = Number(headers['x-fuzz-index']);
  if (kind === 'foreign' && answer.status !== 403)
    return `status ${answer.status} for a foreign page`;
  if (answer.headers[MARK] === undefined) return ownFault(answer);
  return bodyFault(run, index, body) ?? passedFault(answer, answerOf(run.seed, index));
}

/** Every backend that got the request got its exact bytes. */
function bodyFault(run, index, body) {
  const sent = createHash('sha256').update(body).digest('hex');
  const got = run.bodies.get(index) ?? [];
  if (got.length > run.backends) return `${got.length} backends were asked`;
  return got.length > 0 && got.every((hash) => hash === sent) ? null : 'other bytes at the backend';
}

function passedFault(answer, expected) {
  const { status, chunks, end, headers } = expected;
  if (answer.status !== status) return `status ${answer.status}, not ${status}`;
  if (answer.headers['x-nightshift-dropped'] !== undefined) return 'a drop that is none';
  if (answer.headers['x-request-id'] === 'of-the-server') return 'the request id of the server';
  const whole = Buffer.concat(chunks);
  if (!answer.isWhole)
    return whole.subarray(0, answer.body.length).equals(answer.body) ? null : 'other bytes';
  if (end === 'cut') return 'an answer that was cut and looks whole';
  const cookies = headers.filter(([name]) => name === 'set-cookie').length;
  if ((answer.headers['set-cookie'] ?? []).length !== cookies) return 'lost fields';
  return whole.equals(answer.body) ? null : 'other bytes';
}

/** An answer of the gateway itself has the envelope of errors, and a status that its code allows. */
function ownFault({ status, headers, body, isWhole }) {
  if (!isWhole) return 'a broken answer of the gateway';
  if (status < 400) return parsed(body) === undefined ? 'no JSON' : null;
  if (headers['x-request-id'] === undefined) return `status ${status} without an x-request-id`;
  const error = parsed(body)?.error;
  if (
    Object.keys(error ?? {})
      .sort()
      .join() !== 'code,message,param,type'
  ) {
    return `status ${status} with the body ${body.toString().slice(0, 200)}`;
  }
  if (status < 500) return null;
  if (CODES.get(error.code) !== status || NEVER.includes(error.code)) {
    return `status ${status} with the code ${error.code}`;
  }
  return null;
}

/** Whether bytes of a bare socket have an error that the gateway may answer with. */
function isKnownError(bytes) {
  const text = bytes.toString('latin1');
  const statuses = [...text.matchAll(/(?:^|\n)HTTP\/1\.1 (5\d\d) /g)].map(([, status]) => status);
  const codes = [...text.matchAll(/"code":"(\w+)"/g)].map(([, code]) => String(CODES.get(code)));
  return text.includes(`${MARK}: `) || statuses.every((status) => codes.includes(status));
}

module.exports = { faultOf, isKnownError };
