'use strict';

/** A mock model server and a whole stack in front of it, on which a row measures. */
const { createClient, expectComplete, nowMs } = require('./api-client');
const { inputFile } = require('./input-files');
const { startMock } = require('./mock-server');
const { watch } = require('./process-stats');
const { startProduct } = require('./product');

const WARM_UP_LINES = 2_000;
const WARM_UP_TIMEOUT_MS = 120_000;

/**
 * Runs `work` in a fresh stack and takes everything down afterwards, whatever happens.
 *
 * @template T
 * @param {{ bench: object, settings?: object, warm?: boolean, warmUpLines?: number }} options `warm` runs a first batch
 *   whose figures count for nothing: compiled code, open connections, a read-ahead database
 * @param {(scene: object) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function inScene({ bench, settings, warm = true, warmUpLines }, work) {
  const mock = await startMock();
  try {
    const options = { bench, settings, warm, warmUpLines, mock, gatewayUrl: mock.url };
    return await inStack(options, work);
  } finally {
    await mock.stop();
  }
}

/** As {@link inScene}, with a mock of the caller and something else in front of it. */
async function inStack({ bench, settings, warm = true, warmUpLines, mock, gatewayUrl }, work) {
  const product = await startProduct({ ...bench, gatewayUrl, settings });
  try {
    const scene = openScene({ bench, mock, product });
    if (warm) await warmUp(scene, warmUpLines);
    return await work(scene);
  } finally {
    await product.stop();
  }
}

function openScene({ bench, mock, product }) {
  const client = createClient(product.api);
  const roots = [...product.pids, mock.pid];
  const observe = () => watch({ roots, memoryOf: product.workerPid });
  return {
    bench,
    mock,
    product,
    client,
    observe,
    /** Uploads a file and runs it as a batch to its end; what was measured on the way. */
    async run({ file, lines, latencyMs = 0, models = {}, everyMs = 50, timeoutMs }) {
      const fileId = await client.upload(file);
      await mock.reset({ latencyMs, models });
      const observation = observe();
      const { id, sentMs } = await client.create(fileId);
      const isNear = () => mock.hasAnswered(lines);
      const { batch, atMs } = await client.ended(id, { everyMs, timeoutMs, isNear });
      const usage = observation.end();
      expectComplete(batch, lines);
      const stats = await mock.stats();
      return {
        id,
        createToFirstMs: stats.firstRequestMs - sentMs,
        createToCompletedMs: atMs - sentMs,
        lastAnswerToCompletedMs: atMs - stats.lastAnswerMs,
        sentAgain: stats.requests - lines,
        createdAtMs: sentMs,
        stats,
        usage,
      };
    },
  };
}

async function warmUp(scene, lines = WARM_UP_LINES) {
  const file = await inputFile(scene.bench.scratch, { lines });
  const startedMs = nowMs();
  await scene.run({ file, lines, timeoutMs: WARM_UP_TIMEOUT_MS });
  scene.bench.note(`warm-up took ${((nowMs() - startedMs) / 1000).toFixed(1)} s`);
}

module.exports = { inScene, inStack };
