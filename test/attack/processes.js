'use strict';

const fs = require('node:fs');
const path = require('node:path');

/** The processes of a stack by name: `{ pid, rssMb, peakMb }`, resident memory as Linux tells it. */
function processesOf(dataDir) {
  const parts = read(dataDir, 'processes.json');
  return Object.fromEntries(parts.map(({ name, pid }) => [name, { pid, ...memoryOf(pid) }]));
}

function memoryOf(pid) {
  const file = `/proc/${pid}/status`;
  if (!fs.existsSync(file)) return { rssMb: 0, peakMb: 0 };
  const status = fs.readFileSync(file, 'utf8');
  const mb = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
  return { rssMb: mb('VmRSS'), peakMb: mb('VmHWM') };
}

/** Time series of API and worker, by process. */
async function seriesOf(dataDir) {
  const settings = read(dataDir, 'config.json');
  const ports = {
    api: settings.api.observability_port,
    worker: settings.worker.observability_port,
  };
  const counts = {};
  for (const [name, port] of Object.entries(ports)) {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    const text = await response.text();
    counts[name] = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  }
  return counts;
}

function read(dataDir, name) {
  return JSON.parse(fs.readFileSync(path.join(dataDir, 'run', name), 'utf8'));
}

module.exports = { processesOf, seriesOf };
