'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { Client } = require('pg');

/** The API's process. */
function apiProcess(dataDir) {
  const parts = JSON.parse(fs.readFileSync(path.join(dataDir, 'run', 'processes.json'), 'utf8'));
  const { pid } = parts.find(({ name }) => name === 'api');
  return processFigures(pid);
}

/** A process: its id, open files, resident bytes. Linux tells them; elsewhere they are null. */
function processFigures(pid) {
  const proc = (name) => path.join('/proc', String(pid), name);
  if (!fs.existsSync(proc('status'))) return { pid, rssMb: null, openFiles: null };
  const status = fs.readFileSync(proc('status'), 'utf8');
  const rssMb = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)[1]) / 1024;
  return { pid, rssMb, openFiles: fs.readdirSync(proc('fd')).length };
}

/** Temporary files, and objects that belong to nothing that the database knows. */
async function leftOvers(dataDir) {
  const root = path.join(dataDir, 'objects');
  const left = fs.readdirSync(path.join(root, 'tmp')).map((name) => `tmp/${name}`);
  const known = await knownPrefixes(dataDir);
  for (const file of walk(path.join(root, 'objects'), '')) {
    const key = file.startsWith('batches/') ? file.split('/').slice(0, 2).join('/') : file;
    if (!known.has(key)) left.push(file);
  }
  return left;
}

function* walk(folder, prefix) {
  if (!fs.existsSync(folder)) return;
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) yield* walk(path.join(folder, entry.name), `${prefix}${entry.name}/`);
    else yield prefix + entry.name;
  }
}

async function knownPrefixes(dataDir) {
  const settings = JSON.parse(fs.readFileSync(path.join(dataDir, 'run', 'config.json'), 'utf8'));
  const client = new Client({ connectionString: settings.postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select object_key as key from files
       union all select 'uploads/' || upload_id || '/' || id from upload_parts
       union all select 'batches/' || id from batches
       union all select 'batch-records/' || id || '.json' from batches`,
    );
    return new Set(rows.map(({ key }) => key));
  } finally {
    await client.end();
  }
}

/** How memory went: MB at the first sample after the warm-up, at the end, and per 10,000 requests. */
function trendOf(samples) {
  const late = samples.slice(Math.floor(samples.length * 0.3));
  if (late.length < 4) return null;
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(late.map(({ at }) => at));
  const y = mean(late.map(({ rssMb }) => rssMb));
  const above = late.reduce((sum, { at, rssMb }) => sum + (at - x) * (rssMb - y), 0);
  const below = late.reduce((sum, { at }) => sum + (at - x) ** 2, 0);
  const half = late.length >> 1;
  return {
    perTenThousand: (above / below) * 10_000,
    firstHalf: mean(late.slice(0, half).map(({ rssMb }) => rssMb)),
    secondHalf: mean(late.slice(half).map(({ rssMb }) => rssMb)),
  };
}

module.exports = { apiProcess, processFigures, leftOvers, trendOf };
