'use strict';

/** A whole stack whose models run at a provider, on which the rows of delegation measure. */
const { Client, Connection } = require('@temporalio/client');
const { expectComplete, nowMs, waitFor } = require('./api-client');
const { inputFile } = require('./input-files');
const { startProviderServer } = require('./provider-server');
const { inScene } = require('./scene');

const WARM_UP_LINES = 2_000;
const LINE_BYTES = 1_024;
const TIMEOUT_MS = 180_000;
/** The entries of `providers` at one server; a model of the same name runs at each. */
const PROVIDERS = {
  'one-part': { poll_initial: '1s', poll_max: '1s' },
  'five-parts': { poll_initial: '1s', poll_max: '1s', max_lines: 10_000 },
  'slow-poll': { poll_initial: '30s', poll_max: '30s', max_open_jobs: 1_000 },
};

/**
 * Runs `work` in a fresh stack with a provider, after a delegated batch that counts for nothing.
 *
 * @template T
 * @param {{ bench: object, settings?: object, warm?: boolean }} options
 * @param {(scene: object) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function inDelegatedScene({ bench, settings = {}, warm }, work) {
  const provider = await startProviderServer();
  const { url } = provider;
  const names = Object.keys(PROVIDERS);
  const entry = (name) => [name, { type: 'openai', url, ...PROVIDERS[name] }];
  const delegation = {
    providers: Object.fromEntries(names.map(entry)),
    delegates: Object.fromEntries(names.map((name) => [name, { provider: name }])),
  };
  try {
    return await inScene(
      { bench, settings: { ...delegation, ...settings }, warm },
      async (scene) => {
        const delegated = { ...scene, provider, runJobs: (run) => runJobs(scene, provider, run) };
        const file = await fileOf(bench, { model: 'one-part', lines: WARM_UP_LINES });
        await delegated.runJobs({ file, lines: WARM_UP_LINES });
        return work(delegated);
      },
    );
  } finally {
    await provider.stop();
  }
}

/** A file of lines for one model, of 1 KiB unless told. */
function fileOf({ scratch }, { model, lines, lineBytes = LINE_BYTES }) {
  return inputFile(scratch, { lines, lineBytes, modelOf: () => model, name: model });
}

/** Runs a file whose models are all delegated to its end. */
async function runJobs({ client, observe }, provider, { file, lines, timeoutMs = TIMEOUT_MS }) {
  const fileId = await client.upload(file);
  provider.reset();
  const observation = observe();
  const { id, sentMs } = await client.create(fileId);
  const { batch, atMs } = await client.ended(id, { timeoutMs });
  const usage = observation.end();
  expectComplete(batch, lines);
  const { jobs } = provider;
  return {
    id,
    parts: jobs.length,
    createToCompletedMs: atMs - sentMs,
    createToLastJobMs: Math.max(...jobs.map(({ createdAtMs }) => createdAtMs)) - sentMs,
    endSeenToCompletedMs: atMs - Math.max(...jobs.map(({ endSeenAtMs }) => endSeenAtMs)),
    usage,
  };
}

/** Waits until the provider has `count` jobs, each of which was looked at. */
function jobsSeen(provider, count, timeoutMs = TIMEOUT_MS) {
  const seen = () => {
    const looked = provider.jobs.filter(({ looks }) => looks > 0);
    return looked.length >= count ? nowMs() : null;
  };
  return waitFor(seen, { timeoutMs, what: `${count} watched jobs` });
}

/** A client of the stack's Temporal for the time of `work`. */
async function withTemporal(product, work) {
  const connection = await Connection.connect({ address: product.temporalAddress });
  try {
    return await work(new Client({ connection, namespace: product.temporalNamespace }));
  } finally {
    await connection.close();
  }
}

module.exports = { fileOf, inDelegatedScene, jobsSeen, withTemporal };
