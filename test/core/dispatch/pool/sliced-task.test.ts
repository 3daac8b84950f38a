import { SlicedTask } from '../../../../core/dispatch/pool/sliced-task';

describe('a sliced task', () => {
  it('lets other work run after 256 steps, and continues with the time of then', () => {
    const deferred: (() => void)[] = [];
    const times: number[] = [];
    const step = (nowMs: number) => times.push(nowMs) < 300;
    const task = new SlicedTask(
      step,
      () => 2,
      (resume) => deferred.push(resume),
    );
    task.run(1);
    expect([times.length, deferred.length]).toEqual([256, 1]);
    task.run(1);
    expect(times).toHaveLength(256);
    deferred[0]!();
    expect([times.length, times.at(-1)]).toEqual([300, 2]);
  });

  it('does not nest if a step runs it', () => {
    let depth = 0;
    let deepest = 0;
    let left = 5;
    const task = new SlicedTask(
      (nowMs) => {
        depth++;
        deepest = Math.max(deepest, depth);
        task.run(nowMs);
        depth--;
        return --left > 0;
      },
      () => 0,
      () => {},
    );
    task.run(0);
    expect([deepest, left]).toEqual([1, 0]);
  });
});
