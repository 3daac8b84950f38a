'use strict';

/** The calls of the OpenAI API that a row makes, with the times between which it measures. */
const fs = require('node:fs');

const TERMINAL = ['completed', 'failed', 'expired', 'cancelled'];
const ENDPOINT = '/v1/chat/completions';
/** Calls at the same time in `createMany`. */
const CALLERS = 8;

/** Unix ms with a fraction: the mock's clock. */
const nowMs = () => performance.timeOrigin + performance.now();
/** Pause between two looks at a batch that is about to end. */
const NEAR_END_MS = 10;
/** Pause between two looks at a batch whose end the mock announces: each look takes processor time from what is measured. */
const FAR_FROM_END_MS = 1_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {string} api base URL that ends in /v1 */
function createClient(api) {
  return {
    /** The id of the uploaded file. */
    async upload(file) {
      const form = new FormData();
      form.set('purpose', 'batch');
      form.set('file', await fs.openAsBlob(file), 'bench.jsonl');
      return (await call(`${api}/files`, { method: 'POST', body: form })).id;
    },
    /** Creates a batch; `sentMs` is the moment before the call. */
    async create(fileId) {
      const sentMs = nowMs();
      const body = { input_file_id: fileId, endpoint: ENDPOINT, completion_window: '24h' };
      const batch = await call(`${api}/batches`, json(body));
      return { id: batch.id, sentMs };
    },
    /** Creates many batches of one file, some at a time; returns their ids. */
    async createMany(fileId, count) {
      const ids = [];
      let left = count;
      const caller = async () => {
        while (left-- > 0) ids.push((await this.create(fileId)).id);
      };
      await Promise.all(Array.from({ length: CALLERS }, caller));
      return ids;
    },
    /**
     * Asks until the batch has ended; the batch and the moment of the answer that said so. If `isNear` tells when the end is near,
     * the API is asked once a second until then. Once it is, or the batch is `finalizing`, it is asked so often that the
     * figure does not say when it happened to be asked.
     */
    async ended(id, { everyMs = 50, timeoutMs, isNear = null }) {
      const untilMs = nowMs() + timeoutMs;
      for (let soon = false; ;) {
        if (!soon && isNear !== null) soon = await happensSoon(isNear, everyMs);
        const batch = await call(`${api}/batches/${id}`);
        if (TERMINAL.includes(batch.status)) return { batch, atMs: nowMs() };
        if (nowMs() > untilMs) {
          throw new Error(`batch ${id} is ${batch.status} after ${timeoutMs} ms: ${counts(batch)}`);
        }
        soon ||= batch.status === 'finalizing';
        await pause(soon ? Math.min(everyMs, NEAR_END_MS) : everyMs);
      }
    },
    /** Text of a file. */
    async content(fileId) {
      const response = await fetch(`${api}/files/${fileId}/content`);
      if (!response.ok) throw new Error(`content of ${fileId}: ${response.status}`);
      return response.text();
    },
    /** Asks for the end of a batch; `sentMs` is the moment before the call. */
    async cancel(id) {
      const sentMs = nowMs();
      await call(`${api}/batches/${id}/cancel`, { method: 'POST' });
      return { sentMs };
    },
  };
}

/** Whether `condition` holds now, or before the API is asked again. */
async function happensSoon(condition, everyMs) {
  const untilMs = nowMs() + FAR_FROM_END_MS;
  do {
    if (await condition()) return true;
    await pause(everyMs);
  } while (nowMs() < untilMs);
  return false;
}

/** Throws where a batch did not end as it should: a figure of a broken run is no figure. */
function expectComplete(batch, lines) {
  const { completed, total } = batch.request_counts;
  if (batch.status === 'completed' && completed === lines && total === lines) return;
  throw new Error(
    `batch ${batch.id} is ${batch.status}, ${counts(batch)}, ${JSON.stringify(batch.errors)}`,
  );
}

function counts({ request_counts: { completed, failed, total } }) {
  return `${completed} completed, ${failed} failed of ${total}`;
}

async function call(url, init) {
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok) throw new Error(`${init?.method ?? 'GET'} ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

function json(body) {
  const headers = { 'content-type': 'application/json' };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

/** Waits for `condition` to give something else than null; throws after `timeoutMs`. */
async function waitFor(condition, { everyMs = 20, timeoutMs, what }) {
  const untilMs = nowMs() + timeoutMs;
  for (;;) {
    const found = await condition();
    if (found !== null) return found;
    if (nowMs() > untilMs) throw new Error(`no ${what} after ${timeoutMs} ms`);
    await pause(everyMs);
  }
}

module.exports = { createClient, expectComplete, nowMs, pause, waitFor };
