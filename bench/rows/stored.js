'use strict';

/**
 * Row stored: how long reads of the API take beside 1, 1,000 and 100,000 stored batches. Copies of a batch that ran are
 * inserted into PostgreSQL by SQL: all columns as they are, but for id and time of creation.
 */
const { randomInt } = require('node:crypto');
const { calmRuns } = require('../calm');
const { disturbance, quantile, rounded } = require('../figures');
const { connect } = require('../footprint');
const { inputFile } = require('../input-files');
const { pointPlot } = require('../plots/plot');
const { inScene } = require('../scene');
const { groupsOf, rangeOf, summarize } = require('../summary');
const { atMost } = require('../verdicts');

const SIZES = [1, 1_000, 100_000];
const WARM_UP_CALLS = 200;
const PAGE = 20;
const MUST_MS = 10;
/** The sweep has nothing to do for copies: their scratch objects count as removed. */
const OWN = {
  id: `'batch_' || md5(n::text)`,
  created_at: 'created_at - n',
  scratch_gone_at: 'now()',
};

/** @returns {Promise<import('../report').Result>} */
async function storedBatches(bench) {
  const calls = bench.quick ? 300 : 2_000;
  const runs = await inScene({ bench, warm: false }, async (scene) => {
    const clients = await connect(scene.product);
    try {
      return await allSizes(scene, { ...clients, calls });
    } finally {
      await clients.close();
    }
  });
  const title = 'reads of the API beside stored batches, one call at a time';
  const columns = Object.fromEntries(
    READS.flatMap(({ name }) => [`${name} p50, ms`, `${name} p99, ms`]).map((one) => [one, 2]),
  );
  return {
    row: 'stored',
    title,
    verdicts: judge(runs),
    runs,
    summary: summarize(runs, { by: ['stored'], columns }, bench),
    plot: pointPlot(runs, PLOT, bench),
  };
}

async function allSizes(scene, { postgres, calls }) {
  const { bench, client, product } = scene;
  const file = await inputFile(bench.scratch, { lines: 1 });
  const { id } = await scene.run({ file, lines: 1, timeoutMs: 60_000 });
  const runs = [];
  for (const [at, stored] of SIZES.entries()) {
    await insertCopies(postgres, id, { from: SIZES[at - 1] ?? 1, to: stored });
    const ids = await idsOf(postgres);
    const reads = { api: product.api, ids, calls };
    await timed({ ...reads, calls: WARM_UP_CALLS });
    bench.note(`${stored} batches are stored`);
    const work = async () => {
      const observation = scene.observe();
      const found = await timed(reads);
      return { stored, ...found, ...disturbance(observation.end()) };
    };
    runs.push(...(await calmRuns(bench, work)));
  }
  // The batch that ran still answers as it did.
  await client.ended(id, { timeoutMs: 5_000 });
  return runs;
}

async function insertCopies(postgres, id, { from, to }) {
  const { rows } = await postgres.query(
    `select column_name as name from information_schema.columns
     where table_schema = current_schema() and table_name = 'batches' and is_identity = 'NO'`,
  );
  const names = rows.map(({ name }) => name);
  const values = names.map((name) => OWN[name] ?? name);
  await postgres.query(
    `insert into batches (${names.join(', ')})
     select ${values.join(', ')} from batches, generate_series(${from}, ${to - 1}) n where id = $1`,
    [id],
  );
  await postgres.query('vacuum analyze batches');
}

async function idsOf(postgres) {
  const { rows } = await postgres.query('select id from batches order by seq limit 100000');
  return rows.map(({ id }) => id);
}

/** What a client reads: a batch, the newest page, and a page from anywhere. */
const READS = [
  { name: 'get', path: (ids) => `/batches/${oneOf(ids)}` },
  { name: 'list', path: () => `/batches?limit=${PAGE}` },
  { name: 'list after', path: (ids) => `/batches?limit=${PAGE}&after=${oneOf(ids)}` },
];

async function timed({ api, ids, calls }) {
  const found = {};
  for (const { name, path } of READS) {
    const times = [];
    for (let call = 0; call < calls; call++) {
      const startedMs = performance.now();
      const response = await fetch(`${api}${path(ids)}`);
      await response.text();
      if (!response.ok) throw new Error(`${name}: ${response.status}`);
      times.push(performance.now() - startedMs);
    }
    found[`${name} p50, ms`] = rounded(quantile(times, 0.5), 2);
    found[`${name} p99, ms`] = rounded(quantile(times, 0.99), 2);
  }
  return found;
}

function oneOf(ids) {
  return ids[randomInt(ids.length)];
}

function judge(runs) {
  const most = groupsOf(runs, ['stored']).at(-1);
  return READS.map(({ name }) => {
    const value = rangeOf(most, `${name} p99, ms`).median;
    const what = `${name}, p99 beside ${SIZES.at(-1).toLocaleString('en')} batches`;
    return { ...atMost(what, [value], { unit: ' ms', must: MUST_MS }), from: most };
  });
}

const PLOT = {
  title: 'Reads of the API beside stored batches: p99',
  unit: 'ms',
  x: 'stored',
  xLabel: 'stored batches',
  values: Object.fromEntries(READS.map(({ name }) => [name, `${name} p99, ms`])),
};

module.exports = { storedBatches };
