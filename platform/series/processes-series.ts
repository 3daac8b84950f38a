import { Counter, Gauge, type Registry } from 'prom-client';

/**
 * Registers the series of the parent of a worker's processes.
 * @param count how many of them work now
 */
export function createProcessesSeries(registry: Registry, count: () => number) {
  const registers = [registry];
  const gauge: Gauge = new Gauge({
    name: 'worker_processes',
    help: 'Processes of this worker that work now',
    registers,
    collect: () => gauge.set(count()),
  });
  const died = new Counter({
    name: 'worker_process_deaths_total',
    help: 'Processes of this worker that died and were started again',
    registers,
  });
  return { died };
}
