import type { Worker } from '@temporalio/worker';
import pino from 'pino';
import { createMetricsRegistry } from '../../platform/metrics';
import { startObservabilityServer } from '../../platform/observability-server';
import { hostWorkers } from '../../workers/host-workers';
import { until } from '../support/until';

/** A worker whose run ends when the test says so. */
class PlayedWorker {
  state = 'RUNNING';
  end: () => void = () => undefined;
  fail: (error: Error) => void = () => undefined;

  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.end = resolve;
      this.fail = reject;
    });
  }
  getState(): string {
    return this.state;
  }
  shutdown(): void {
    if (this.state !== 'RUNNING') throw new Error('shut down twice');
    this.state = 'DRAINING';
  }
}

/** Two hosted workers; `order` lists what happened, in order. */
async function hostTwo(drainBudgetMs = 30_000) {
  const workers = [new PlayedWorker(), new PlayedWorker()] as const;
  const order: string[] = [];
  const drain = new AbortController();
  drain.signal.addEventListener('abort', () => {
    order.push(`drain while ${workers.map(({ state }) => state).join(' and ')}`);
  });
  const observability = await startObservabilityServer({
    ...{ host: '127.0.0.1', port: 0, portSetting: 'worker.observability_port' },
    ...{ registry: createMetricsRegistry('worker') },
  });
  observability.markStarted({});
  const hosted = hostWorkers({
    ...{ workers: workers as unknown as Worker[], observability, drain, drainBudgetMs },
    logger: pino({ level: 'silent' }),
    release: [
      { name: 'journal', run: async () => void order.push('journal') },
      { name: 'postgres', run: async () => void order.push('postgres') },
    ],
  });
  const ready = async () => (await fetch(`${observability.url}/ready`)).text();
  const states = () => workers.map(({ state }) => state);
  return { workers, order, drain, hosted, ready, states };
}

describe('workers that shut down', () => {
  it('drain their chunks, take no new work, and release resources only afterwards', async () => {
    const { workers, order, drain, hosted, ready, states } = await hostTwo();
    expect(drain.signal.aborted).toBe(false);
    const closed = hosted.close();
    await until(() => states().every((state) => state === 'DRAINING'), 5_000, 'no new jobs');
    expect(drain.signal.aborted).toBe(true);
    expect(await ready()).toContain('draining');
    workers[0].end();
    // After a round trip the second worker still runs, and nothing has been released.
    await ready();
    expect(order).toEqual(['drain while RUNNING and RUNNING']);
    workers[1].end();
    await closed;
    expect(order.slice(1)).toEqual(['journal', 'postgres']);
    await hosted.finished;
  });

  it('shut down once even if they are closed twice', async () => {
    const { workers, order, hosted, states } = await hostTwo();
    const closed = [hosted.close(), hosted.close()];
    await until(() => states().every((state) => state === 'DRAINING'), 5_000, 'no new jobs');
    for (const worker of workers) worker.end();
    await Promise.all(closed);
    await hosted.close();
    expect(order).toHaveLength(3);
  });
});

describe('a worker that fails', () => {
  it('ends the other workers of the process, and the reason is reported', async () => {
    const { workers, hosted, states } = await hostTwo();
    workers[0].state = 'FAILED';
    workers[0].fail(new Error('lost its connection'));
    await expect(hosted.finished).rejects.toThrow('lost its connection');
    expect(states()).toEqual(['FAILED', 'DRAINING']);
    await hosted.close();
  });
});
