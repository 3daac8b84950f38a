'use strict';

/**
 * A batch API of a provider that costs little: it keeps only the ids of lines, and makes results while it streams
 * them. Jobs end at once, or when a row says so.
 */
const http = require('node:http');
const { Readable } = require('node:stream');
const { nowMs } = require('./api-client');

const REPLY = JSON.stringify({
  ...{ id: 'chatcmpl-bench', object: 'chat.completion', created: 0, model: 'bench' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(750) } }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
});
const HEAD = Buffer.from('{"custom_id":"');
/** Length of the ids that Nightshift gives to lines. */
const ID_CHARS = 19;
const LINES_PER_PIECE = 256;
const LINE_FEED = 10;

/**
 * @typedef {object} Job what a row may read of a job; times are Unix ms, null if it has not happened
 * @property {number} createdAtMs
 * @property {number | null} cancelledAtMs when the cancel arrived
 * @property {number} looks answered questions for its status
 * @property {number | null} endSeenAtMs when the first answer left that says it has ended
 */

/** Starts one on a free loopback port. Its jobs are completed at once until `reset` says otherwise. */
async function startProviderServer() {
  const state = { holds: false, jobs: [], files: new Map(), made: 0 };
  const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    void answer(state, request, response).catch(() => response.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** Forgets its jobs. With `holds`, further jobs run until they are cancelled. */
    reset({ holds = false } = {}) {
      Object.assign(state, { holds, jobs: [] });
      state.files.clear();
    },
    /** @returns {Job[]} since the last reset, oldest first */
    get jobs() {
      return state.jobs;
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(state, request, response) {
  const url = new URL(request.url, 'http://provider');
  const [, , kind, id, action] = url.pathname.split('/');
  if (kind === 'files') return answerFile(state, request, response, { id, action });
  if (request.method === 'POST' && id === undefined) {
    return send(response, create(state, JSON.parse(await text(request))));
  }
  request.resume();
  if (id === undefined) return send(response, page(state, url.searchParams));
  const job = state.jobs.find((one) => one.batch.id === id);
  if (job === undefined) return send(response, { error: { message: 'no such batch' } }, 404);
  if (action === 'cancel') cancel(job);
  else see(job);
  send(response, job.batch);
}

async function answerFile(state, request, response, { id, action }) {
  if (request.method === 'POST') {
    const file = { id: `file-${++state.made}`, object: 'file', purpose: 'batch' };
    state.files.set(file.id, await lineIds(request));
    return send(response, file);
  }
  request.resume();
  if (action !== 'content') return send(response, { id, object: 'file', deleted: true });
  response.writeHead(200, { 'content-type': 'application/jsonl' });
  Readable.from(resultPieces(state.files.get(id) ?? [])).pipe(response);
}

/** The ids of the lines of an upload, from wherever a line begins in the form. */
async function lineIds(request) {
  const ids = [];
  const take = (line) => {
    if (!line.subarray(0, HEAD.length).equals(HEAD)) return;
    ids.push(line.latin1Slice(HEAD.length, HEAD.length + ID_CHARS));
  };
  let rest = Buffer.alloc(0);
  for await (const piece of request) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      take(bytes.subarray(start, end));
      start = end + 1;
    }
    rest = bytes.subarray(start);
  }
  take(rest);
  return ids;
}

function* resultPieces(ids) {
  for (let at = 0; at < ids.length; at += LINES_PER_PIECE) {
    yield ids
      .slice(at, at + LINES_PER_PIECE)
      .map(resultLine)
      .join('');
  }
}

function resultLine(id) {
  const response = `{"status_code":200,"request_id":"req_${id}","body":${REPLY}}`;
  return `{"id":"res_${id}","custom_id":"${id}","response":${response},"error":null}\n`;
}

function create(state, asked) {
  const total = (state.files.get(asked.input_file_id) ?? []).length;
  const batch = {
    id: `batch_${++state.made}`,
    ...{ object: 'batch', created_at: Math.floor(Date.now() / 1000), errors: null },
    ...{ endpoint: asked.endpoint, completion_window: asked.completion_window },
    ...{ input_file_id: asked.input_file_id, metadata: asked.metadata },
    ...{ status: 'in_progress', output_file_id: null, error_file_id: null },
    request_counts: { total, completed: 0, failed: 0 },
  };
  if (!state.holds) {
    // The results are those of the input, so one list of ids serves both files.
    const counts = { total, completed: total, failed: 0 };
    const ended = { status: 'completed', output_file_id: batch.input_file_id };
    Object.assign(batch, ended, { request_counts: counts });
  }
  const times = { createdAtMs: nowMs(), cancelledAtMs: null, endSeenAtMs: null };
  state.jobs.push({ batch, ...times, looks: 0 });
  return batch;
}

function cancel(job) {
  job.cancelledAtMs ??= nowMs();
  job.batch.status = 'cancelled';
}

function see(job) {
  job.looks++;
  if (job.batch.status !== 'in_progress') job.endSeenAtMs ??= nowMs();
}

/** Newest first. */
function page({ jobs }, query) {
  const limit = Number(query.get('limit') ?? 20);
  const after = jobs.findIndex(({ batch }) => batch.id === query.get('after'));
  const end = after < 0 ? jobs.length : after;
  const start = Math.max(0, end - limit);
  const data = jobs.slice(start, end).map(({ batch }) => batch);
  return { object: 'list', data: data.reverse(), has_more: start > 0 };
}

async function text(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

function send(response, body, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

module.exports = { startProviderServer };
