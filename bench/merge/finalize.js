'use strict';

/**
 * Finalizes the batch of a folder once: `node bench/merge/finalize.js ROOT FOLDER`. Prints its time, the
 * processor seconds and the memory of this process before and at its peak as JSON.
 */
const fs = require('node:fs');
const path = require('node:path');
const { memoryMb } = require('../process-stats');
const { BATCH, loadProduct } = require('./product');

async function main([root, folder]) {
  const product = loadProduct(root);
  const storage = await product.openStorage({
    type: 'filesystem',
    path: path.join(folder, 'data'),
  });
  const { store, journal } = storage;
  const keys = ['output', 'error'].map((kind) =>
    product.fileKey(BATCH.tenantFolder, product.resultFileId(BATCH.id, kind)),
  );
  for (const key of [...keys, product.manifestKey(BATCH.id)]) await store.delete(key);
  const batches = {
    find: async () => ({
      ...{ tenant: 'bench', inputObjectKey: BATCH.inputKey },
      ...{ status: 'in_progress', stopCause: null },
    }),
    recordEnd: async () => 'completed',
  };
  const files = { store, journal, tenantHash: () => BATCH.tenantFolder };
  const deps = { ...files, batches, drafts: new product.ResultDrafts(files) };
  const finalize = product.createFinalizeNow(deps);

  const before = { cpu: process.cpuUsage(), ms: performance.now(), mb: memoryMb(process.pid).now };
  const input = { batchId: BATCH.id, nonce: BATCH.nonce, cause: null };
  const { kind, counts } = await finalize(input, () => undefined);
  const seconds = (performance.now() - before.ms) / 1000;
  const { user, system } = process.cpuUsage(before.cpu);
  if (kind !== 'done') throw new Error(`finalization gave ${kind}`);
  await storage.close();
  const [output, error] = keys.map((key) => product.objectPath(path.join(folder, 'data'), key));
  process.stdout.write(
    JSON.stringify({
      ...{ seconds, counts, output, error, bytes: fs.statSync(output).size, idleMb: before.mb },
      ...{ cpuSec: (user + system) / 1e6, peakMb: memoryMb(process.pid).peak },
    }),
  );
}

void main(process.argv.slice(2));
