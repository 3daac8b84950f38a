import type { Worker } from '@temporalio/worker';
import pino from 'pino';
import { createPermitDispatcher } from '../../inference/permit-dispatcher';
import { createMetricsRegistry } from '../../platform/metrics';
import { startObservabilityServer } from '../../platform/observability-server';
import type { HostedWorkers } from '../../workers/host-workers';
import { hostWorkers } from '../../workers/host-workers';
import { acquire } from '../support/promises-of-sending';

const PERMIT = { tenant: 't', batch: 'b', model: 'm' };

/** A worker whose one job runs until the test ends it. */
class BusyWorker {
  polls = true;
  endJob: () => void = () => undefined;

  run(): Promise<void> {
    return new Promise((resolve) => (this.endJob = resolve));
  }
  getState(): string {
    return this.polls ? 'RUNNING' : 'DRAINING';
  }
  shutdown(): void {
    this.polls = false;
  }
}

/** A worker process without Temporal and PostgreSQL, wired like the real one. */
async function workerProcess() {
  const workers = [new BusyWorker(), new BusyWorker()];
  const drain = new AbortController();
  const released: string[] = [];
  const phases: { phase: string; result: string; tookMs: number }[] = [];
  const logger = pino({ level: 'info' }, { write: (line) => phases.push(JSON.parse(line)) });
  const observability = await startObservabilityServer({
    ...{ host: '127.0.0.1', port: 0, portSetting: 'worker.observability_port' },
    ...{ registry: createMetricsRegistry('worker') },
  });
  observability.markStarted({});
  const hosted: HostedWorkers = hostWorkers({
    ...{ workers: workers as unknown as Worker[], observability, drain, logger },
    drainBudgetMs: 5_000,
    release: [{ name: 'journal', run: async () => void released.push('journal') }],
  });
  const dispatcher = createPermitDispatcher({
    ...{ global: 2, perModel: 2 },
    onGuardTripped: (error) => hosted.distrust('guard_shutdown', error),
  });
  const ready = async (): Promise<{ status: number; body: string }> => {
    const response = await fetch(`${observability.url}/ready`);
    return { status: response.status, body: await response.text() };
  };
  return { workers, drain, released, phases, hosted, dispatcher, ready };
}

describe('a permit that is released twice', () => {
  it('makes the worker not ready, and ends it once requests in flight are finished', async () => {
    const { workers, drain, released, phases, hosted, dispatcher, ready } = await workerProcess();
    const permit = await acquire(dispatcher, PERMIT);
    permit.release();
    expect(await ready()).toMatchObject({ status: 200 });
    expect(drain.signal.aborted).toBe(false);

    permit.release();
    expect(await ready()).toMatchObject({
      status: 503,
      body: expect.stringContaining('guard_shutdown'),
    });
    expect(drain.signal.aborted).toBe(true);
    expect(workers.map(({ polls }) => polls)).toEqual([false, false]);
    // Running jobs may take their time to end.
    expect(released).toEqual([]);
    for (const worker of workers) worker.endJob();

    await expect(hosted.finished).rejects.toMatchObject({ code: 'permit_released_twice' });
    expect(released).toEqual(['journal']);
    expect(phases.map(({ phase, result }) => `${phase} ${result}`)).toEqual([
      'drain done',
      'journal done',
      'observability done',
    ]);
    for (const { tookMs } of phases) expect(tookMs).toBeGreaterThanOrEqual(0);
    await hosted.close();
  });

  it('never grants a permit twice', async () => {
    const { dispatcher, hosted, workers } = await workerProcess();
    const permit = await acquire(dispatcher, PERMIT);
    permit.release();
    permit.release();
    permit.release();
    expect(dispatcher.stats()).toMatchObject({ inFlight: 0, guardTripped: true });
    expect([1, 2, 3].map(() => dispatcher.tryAcquire(PERMIT) !== null)).toEqual([
      true,
      true,
      false,
    ]);
    for (const worker of workers) worker.endJob();
    await hosted.close();
  });
});
