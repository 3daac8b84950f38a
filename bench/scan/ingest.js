'use strict';

/**
 * Ingests a file six times, as a warm worker does, and prints the medians of all but the first as JSON:
 * `node bench/scan/ingest.js ROOT FILE FOLDER`. The plans are written to an object store in FOLDER.
 */
const { randomUUID } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { measureWarm } = require('./measure');
const { loadProduct } = require('./product');

const LIMITS = {
  max_line_bytes: 16 << 20,
  max_requests: 10_000_000,
  max_inputs: 10_000_000,
  max_json_depth: 10_000,
  max_json_tokens: 10_000_000,
};

async function main([root, file, folder]) {
  const product = loadProduct(root);
  product.boundHeapGrowth();
  const storage = await product.openStorage({ type: 'filesystem', path: folder });
  const key = `files/bench/${path.basename(file)}`;
  const input = product.objectPath(folder, key);
  fs.mkdirSync(path.dirname(input), { recursive: true });
  fs.linkSync(file, input);
  const deps = {
    store: storage.store,
    isRouted: () => true,
    lineIndex: product.createLineIndex(),
    limits: LIMITS,
    batch: { moderation_default_model: 'moderation', single_model_batches: false },
  };
  const found = await measureWarm(() => ingest(product, { deps, key }));
  await storage.close();
  process.stdout.write(JSON.stringify(found));
}

/** Reads and checks the file, and writes its plans. Returns the number of requests. */
async function ingest(product, { deps, key }) {
  const batchId = `batch_${randomUUID().replaceAll('-', '')}`;
  const heartbeat = {
    ...{ bytes: 0, signal: new AbortController().signal },
    ...{ check: () => undefined, beat: () => undefined, stop: () => undefined },
  };
  const gate = new product.ScanGate();
  const ingestion = { deps, batchId, heartbeat, attempt: {}, gate, maxUndecided: 0 };
  const scanned = await product.scanFile(ingestion, { key, endpoint: '/v1/chat/completions' });
  if (scanned.errors.count > 0) throw new Error(JSON.stringify(scanned.errors.list()[0]));
  const { plan, requests: lineCount, files } = scanned;
  await product.writePlan(deps.store, batchId, { plan, lineCount, files });
  return lineCount;
}

void main(process.argv.slice(2));
