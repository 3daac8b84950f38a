'use strict';

/** Rows 2 and 3: requests per second at a model server that takes no time, beside a peer. */
const { calmRuns } = require('../calm');
const { disturbance, median, rounded } = require('../figures');
const { inputFile } = require('../input-files');
const { createPeers } = require('../peers/run-peer');
const { inScene } = require('../scene');

const IN_FLIGHT = 256;
const SETTINGS = {
  concurrency: { global: IN_FLIGHT, per_model: IN_FLIGHT },
  limits: { max_requests: 1_000_000, max_file_bytes: '2GiB' },
};
/** The mock must not be what is measured. */
const MIN_HEADROOM = 3;

/** Row 2. @returns {Promise<import('../report').Result>} */
function rateBesideJobQueue(bench) {
  const title = 'rate at 0 ms beside a durable job queue';
  return compare(bench, { row: 2, title, peer: 'jobQueue', must: 2, aim: 5 });
}

/** Row 3. @returns {Promise<import('../report').Result>} */
function rateBesideLoop(bench) {
  const title = 'rate at 0 ms beside a loop that keeps nothing';
  return compare(bench, { row: 3, title, peer: 'plainLoop', must: 0.8, aim: 1 });
}

async function compare(bench, { row, title, peer, must, aim }) {
  const sizes = bench.quick ? [20_000] : [20_000, 200_000];
  return inScene({ bench, settings: SETTINGS }, async (scene) => {
    const peers = createPeers(scene, IN_FLIGHT);
    const runs = [];
    const verdicts = [];
    for (const lines of sizes) {
      const file = await inputFile(bench.scratch, { lines });
      const ceiling = scene.mock.ceiling({ connections: IN_FLIGHT });
      const contenders = {
        nightshift: () => nightshift(scene, { file, lines }),
        [peer]: () => peers[peer]({ file, lines }),
      };
      const found = await turns(bench, contenders, { lines, ceiling });
      runs.push(...found);
      verdicts.push(...judge(found, { lines, peer, must, aim, ceiling }));
    }
    return { row, title, verdicts, runs };
  });
}

/** One after the other, round by round, so that a slow minute of the machine strikes both. */
async function turns(bench, contenders, { lines, ceiling }) {
  const runs = [];
  for (let round = 0; round < bench.repeat; round++) {
    for (const [who, run] of Object.entries(contenders)) {
      const [found] = await calmRuns({ ...bench, retries: 1 }, run, 1);
      runs.push({ who, lines, ...found, 'raw client, lines/s': rounded(ceiling) });
    }
  }
  return runs;
}

async function nightshift(scene, { file, lines }) {
  const run = await scene.run({ file, lines, timeoutMs: 120_000 + lines * 2 });
  const sendingMs = run.stats.lastAnswerMs - run.stats.firstRequestMs;
  return {
    'lines/s': rounded(lines / (run.createToCompletedMs / 1000)),
    'sending alone, lines/s': rounded(lines / (sendingMs / 1000)),
    'cores used': rounded(run.usage.oursCores, 2),
    'worker, us/line': rounded((run.usage.cpuSec / lines) * 1e6),
    ...disturbance(run.usage),
  };
}

function judge(runs, { lines, peer, must, aim, ceiling }) {
  const rate = (who) => median(runs.filter((run) => run.who === who).map((run) => run['lines/s']));
  const ratio = rounded(rate('nightshift') / rate(peer), 2);
  const headroom = rounded(ceiling / Math.max(rate('nightshift'), rate(peer)), 1);
  const what = `${lines} lines`;
  return [
    { what, value: `${ratio}x`, must: `≥ ${must}x`, aim: `≥ ${aim}x`, met: ratio >= must },
    {
      what: `mock against the faster, ${what}`,
      value: `${headroom}x`,
      must: `≥ ${MIN_HEADROOM}x`,
      aim: '',
      met: headroom >= MIN_HEADROOM,
    },
  ];
}

module.exports = { rateBesideJobQueue, rateBesideLoop };
