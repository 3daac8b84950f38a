'use strict';

/**
 * The health check of the container image. Exits with 0 if a process of ours answers on this machine, and
 * with 1 otherwise. One image runs every process, so it asks the ports of all of them; arguments replace
 * them. Plain Node: a check every 15 seconds must not load the whole program.
 */
const { argv, env } = process;
const PORTS = [
  env.NIGHTSHIFT__API__OBSERVABILITY_PORT || '8081',
  env.NIGHTSHIFT__WORKER__OBSERVABILITY_PORT || '9090',
  env.NIGHTSHIFT__GATEWAY__OBSERVABILITY_PORT || '9091',
  // The simulator.
  '8001',
];
const TIMEOUT_MS = 3_000;

async function ask(port) {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(`http://127.0.0.1:${port}/health`, { signal });
  // The simulator has no such page: any answer but an error of the server shows that it runs.
  if (response.status >= 500) throw new Error(`port ${port} answers ${response.status}`);
}

const ports = argv.length > 2 ? argv.slice(2) : PORTS;
Promise.any(ports.map(ask)).then(
  () => process.exit(0),
  (error) => {
    console.error(error.errors.map(({ message }) => message).join('; '));
    process.exit(1);
  },
);
