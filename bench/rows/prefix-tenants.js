'use strict';

/**
 * Hits in the prefix caches of model servers behind a gateway, if several tenants share it: its queue takes turns among
 * them. Pure simulation with the product's own queue, leaders and choice of a backend.
 */
const prefix = require('../prefix/server-pool');
const { tenantsWithDocuments } = require('../prompts');

const TENANTS = [1, 4, 8, 16, 64];
/** Open lines of all workers together: `IN_FLIGHT` of them are at servers, the others wait at the gateway. */
const VARIANTS = [
  { permits: 64 },
  { permits: 128 },
  { permits: 640 },
  { permits: 640, sharesEarly: true },
];
const DOCUMENTS = 320;
/** Expected output of a line, in the unit of costs. */
const OUTPUT_COST = 128;
const BYTES_PER_TOKEN = 4;
const MUST = { tenants: 64, permits: 640, part: 0.9 };
const AIM = 0.97;

/** @returns {Promise<import('../report').Result>} */
async function prefixTenants(bench) {
  const core = prefix.loadCore(bench.root);
  const runs = [];
  let judged = 0;
  for (const count of TENANTS) {
    const tenants = tenantsWithDocuments(
      count,
      Math.ceil(DOCUMENTS / count / (bench.quick ? 4 : 1)),
    );
    const best = prefix.bestHits(tenants.flat());
    const run = { tenants: count, 'best, %': percent(best) };
    for (const variant of VARIANTS) {
      const { permits, sharesEarly = false } = variant;
      const part = new Gateway(tenants, variant, core).run() / best;
      run[`${permits} permits${sharesEarly ? ', early' : ''}, % of the best`] = percent(part);
      if (count === MUST.tenants && permits === MUST.permits && !sharesEarly) judged = part;
    }
    runs.push(run);
  }
  const verdict = {
    what: `hits divided by the best, ${MUST.tenants} tenants, ${MUST.permits} permits`,
    value: judged.toFixed(3),
    must: `≥ ${MUST.part}`,
    aim: `≥ ${AIM}`,
    met: judged >= MUST.part,
  };
  const title = `prefix cache behind a gateway, ${prefix.IN_FLIGHT} in flight`;
  return { row: 'F10-tenants', title, verdicts: [verdict], runs };
}

/** Batches of several tenants that share a gateway, one chunk each. */
class Gateway {
  constructor(tenants, { permits, sharesEarly }, core) {
    this.core = core;
    this.pool = new prefix.ServerPool(core, { sharesEarly });
    this.queue = new core.FairRequestQueue();
    this.batches = tenants.map((lines, tenant) => {
      const { entries, marks } = prefix.planOf(lines, 'plan', core);
      const order = new core.LeaderFirst({ marks, isAnswered: () => false });
      const starts = core.runStarts({ marks, from: 0, hashOf: () => 1 });
      return { tenant, lines, entries, order, starts, open: 0, permits: permits / tenants.length };
    });
  }

  /** The share of blocks that were in a cache. */
  run() {
    for (const batch of this.batches) this.fill(batch);
    return this.pool.run(() => {
      while (this.pool.hasRoom && this.queue.length > 0) this.dispatch(this.queue.pop());
    });
  }

  /** The worker sends lines of a batch to the gateway, as many as it has permits for. */
  fill(batch) {
    const { order } = batch;
    const { nowMs } = this.pool;
    while (batch.open < batch.permits && !order.isEmpty) {
      const index = order.take(nowMs);
      if (index === null) return;
      order.onSent(index, nowMs);
      if (order.startEndsMs > nowMs) this.pool.at(order.startEndsMs, () => this.fill(batch));
      batch.open++;
      this.queue.push(this.requestOf(batch, index));
    }
  }

  requestOf(batch, index) {
    const { prompt } = batch.lines[batch.entries[index]];
    const start = batch.starts[index];
    return Object.assign(
      new this.core.QueuedRequest({
        ...{ tenant: `t${batch.tenant}`, model: 'm', owner: {} },
        cost: prompt.length / BYTES_PER_TOKEN + OUTPUT_COST,
        prefix: start === -1 ? null : start,
      }),
      { batch, index, prompt },
    );
  }

  dispatch(request) {
    const { batch, index, prompt } = request;
    this.pool.send({ prompt, number: batch.tenant * 10_000 + index }, () => {
      this.queue.end(request, request.cost);
      batch.open--;
      batch.order.onEnded(index);
      this.fill(batch);
    });
  }
}

function percent(share) {
  return (100 * share).toFixed(1);
}

module.exports = { prefixTenants };
