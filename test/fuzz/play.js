'use strict';

const { trendOf } = require('./watch.js');

const AT_ONCE = 8;
const SAMPLE_EVERY = 500;
const MOST_FAULTS = 20;

/**
 * Sends the requests of a run, several at once, until there are many faults or `mayGoOn` says no. Every 500th one adds
 * what `sample` says of the server to the samples of the run.
 */
async function playAll(run, { sendOne, sample, mayGoOn = () => true }) {
  const { first, requests, samples, faults } = run;
  const startedAt = performance.now();
  let next = first;
  const worker = async () => {
    while (next < first + requests && faults.length < MOST_FAULTS && mayGoOn()) {
      const index = next++;
      await sendOne(run, index).catch((error) => faults.push(`${index}: ${error.stack}`));
      if (index % SAMPLE_EVERY === 0) samples.push({ at: index, ...sample() });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `${next - first} requests in ${seconds.toFixed(0)} s, ${((next - first) / seconds).toFixed(0)}/s`,
  );
}

/** Prints how the memory of the server grew over a run, and adds a fault if that is more than `mostMb`. */
function judgeMemory({ samples, faults }, mostMb) {
  const trend = trendOf(samples);
  if (trend === null) return;
  const { firstHalf, secondHalf, perTenThousand } = trend;
  if (secondHalf - firstHalf > mostMb) {
    faults.push(`memory grew from ${firstHalf.toFixed(0)} to ${secondHalf.toFixed(0)} MB`);
  }
  console.log(
    `trend after the warm-up: ${firstHalf.toFixed(0)} then ${secondHalf.toFixed(0)} MB, ` +
      `${perTenThousand.toFixed(1)} MB for 10,000 requests`,
  );
}

module.exports = { judgeMemory, playAll };
