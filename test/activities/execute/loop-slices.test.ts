import { LoopSlices } from '../../../activities/execute/loop-slices';
import { collectGarbage } from '../../support/collect-garbage';

/** Slices whose tasks and holds of permits are written down. */
function opened() {
  const events: string[] = [];
  const slices = new LoopSlices({
    holdReleases: () => void events.push('hold'),
    endHold: () => void events.push('end'),
  });
  const task = (name: string, work: () => void = () => undefined) => ({
    onSlice: () => {
      events.push(name);
      work();
    },
  });
  return { events, slices, task };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe('tasks in slices', () => {
  it('are done in their order in the next turn, while permits that are given back are held', async () => {
    const { events, slices, task } = opened();
    slices.do(task('a'));
    slices.do(task('b', () => slices.do(task('c'))));
    expect(events).toEqual([]);
    await nextTurn();
    expect(events).toEqual(['hold', 'a', 'b', 'c', 'end']);
    slices.do(task('d'));
    await nextTurn();
    expect(events.slice(5)).toEqual(['hold', 'd', 'end']);
  });

  it('go on in the next turn if they take long', async () => {
    const { events, slices, task } = opened();
    let nowMs = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => nowMs);
    for (const name of ['a', 'b', 'c']) slices.do(task(name, () => (nowMs += 3)));
    await nextTurn();
    expect(events).toEqual(['hold', 'a', 'b', 'end']);
    await nextTurn();
    clock.mockRestore();
    expect(events.slice(4)).toEqual(['hold', 'c', 'end']);
  });

  it('are done if they come while permits are used', async () => {
    const events: string[] = [];
    let isFirst = true;
    const slices: LoopSlices = new LoopSlices({
      holdReleases: () => undefined,
      endHold: () => {
        if (isFirst) slices.do({ onSlice: () => void events.push('b') });
        isFirst = false;
      },
    });
    slices.do({ onSlice: () => void events.push('a') });
    await nextTurn();
    await nextTurn();
    expect(events).toEqual(['a', 'b']);
  });

  it('are let go when they are done, even if others always wait', async () => {
    const { slices, task } = opened();
    let isOver = false;
    const goOn = (): void => {
      if (!isOver) slices.do(task('next', goOn));
    };
    const doneOnce = (): WeakRef<object> => {
      const once = task('once');
      slices.do(once);
      return new WeakRef(once);
    };
    const done = doneOnce();
    goOn();
    await nextTurn();
    await nextTurn();
    collectGarbage();
    const isLetGo = done.deref() === undefined;
    isOver = true;
    await nextTurn();
    expect(isLetGo).toBe(true);
  });
});
