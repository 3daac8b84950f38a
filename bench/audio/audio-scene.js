'use strict';

/** Simulated audio workers and a gateway in front of them, on which a row measures. */
const { disturbance } = require('../figures');
const { watch } = require('../process-stats');
const { startAudioWorker } = require('./audio-worker');
const { openDirectCalls } = require('./direct-calls');
const { startAudioGateway } = require('./gateway');
const { openRestCalls } = require('./rest-calls');

/**
 * Runs `work` and takes everything down afterwards, whatever happens.
 *
 * @template T
 * @param {object} bench
 * @param {{ workers: object[], audio?: object, settings?: object }} options settings of each simulated worker; further
 *   members of `gateway.audio` and of `gateway`
 * @param {(scene: object) => Promise<T>} work
 * @returns {Promise<T>}
 */
async function inAudioScene(bench, { workers: wanted, audio, settings }, work) {
  const ends = [];
  try {
    const workers = [];
    for (const one of wanted) {
      const worker = await startAudioWorker(bench, one);
      ends.push(() => worker.stop());
      workers.push(worker);
    }
    const addresses = workers.map(({ address }) => address);
    const gateway = await startAudioGateway(bench, { addresses, audio, settings });
    ends.push(() => gateway.stop());
    const rest = openRestCalls(gateway.address);
    ends.push(() => rest.close());
    const direct = openDirectCalls(bench, addresses[0]);
    ends.push(() => direct.close());
    const roots = [gateway.pid, ...workers.map(({ pid }) => pid)];
    /** What `measure` finds, and how disturbed it was. */
    const observed = async (measure) => {
      const observation = watch({ roots, memoryOf: gateway.pid });
      let usage;
      const figures = await measure().finally(() => (usage = observation.end()));
      return { ...figures, ...disturbance(usage) };
    };
    return await work({ bench, workers, worker: workers[0], gateway, rest, direct, observed });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

module.exports = { inAudioScene };
