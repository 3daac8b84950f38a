import { EventEmitter } from 'node:events';
import { installSignals, runPhases } from '../../platform/shutdown';

describe('the phases of a shutdown', () => {
  it('run one after another and are reported by name', async () => {
    const order: string[] = [];
    const phase = (name: string) => ({
      name,
      timeoutMs: 1_000,
      run: async () => {
        order.push(`${name} begins`);
        await Promise.resolve();
        order.push(`${name} ends`);
      },
    });
    const heard: string[] = [];
    await runPhases([phase('api'), phase('worker')], ({ name, result }) =>
      heard.push(`${name} ${result}`),
    );
    expect(order).toEqual(['api begins', 'api ends', 'worker begins', 'worker ends']);
    expect(heard).toEqual(['api done', 'worker done']);
  });

  it('continue after a late or failed phase', async () => {
    const failure = new Error('broken');
    const reports = await runPhases([
      { name: 'stuck', timeoutMs: 10, run: () => new Promise(() => undefined) },
      {
        name: 'broken',
        timeoutMs: 1_000,
        run: () => {
          throw failure;
        },
      },
      { name: 'last', timeoutMs: 1_000, run: () => Promise.resolve() },
    ]);
    expect(reports.map(({ result }) => result)).toEqual(['timeout', 'failed', 'done']);
    expect(reports[1]?.error).toBe(failure);
  });
});

describe('signals', () => {
  function listen() {
    const source = new EventEmitter();
    const heard: string[] = [];
    const clock = { nowMs: 0 };
    const remove = installSignals(
      { drain: (signal) => heard.push(`drain ${signal}`), force: () => heard.push('force') },
      { source, nowMs: () => clock.nowMs },
    );
    return { source, heard, clock, remove };
  }

  it('drain on the first and end at once on the second', () => {
    const { source, heard, clock } = listen();
    source.emit('SIGINT', 'SIGINT');
    clock.nowMs = 1_000;
    source.emit('SIGTERM', 'SIGTERM');
    expect(heard).toEqual(['drain SIGINT', 'force']);
  });

  it('that arrive twice within a second count as one Ctrl-C', () => {
    const { source, heard, clock } = listen();
    source.emit('SIGINT', 'SIGINT');
    clock.nowMs = 999;
    source.emit('SIGINT', 'SIGINT');
    expect(heard).toEqual(['drain SIGINT']);
  });

  it('of a closing terminal drain too', () => {
    const { source, heard } = listen();
    source.emit('SIGHUP', 'SIGHUP');
    expect(heard).toEqual(['drain SIGHUP']);
  });

  it('are no longer handled after the handlers are removed', () => {
    const { source, remove } = listen();
    remove();
    expect(source.eventNames()).toEqual([]);
  });
});
