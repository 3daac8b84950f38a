import { oneAhead } from '../../../core/async/one-ahead';

/** Counts up, and notes what it does. */
async function* counting(notes: string[], failsAt = Infinity): AsyncGenerator<number, void> {
  try {
    for (let at = 1; at <= 4; at++) {
      if (at === failsAt) throw new Error(`no ${at}`);
      notes.push(`made ${at}`);
      yield await Promise.resolve(at);
    }
  } finally {
    notes.push('ended');
  }
}

/** Until everything that waits for a settled promise has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('oneAhead', () => {
  it('makes each item while the one in front of it is used', async () => {
    const notes: string[] = [];
    for await (const item of oneAhead(counting(notes))) {
      await settled();
      notes.push(`used ${item}`);
    }
    expect(notes).toEqual([
      ...['made 1', 'made 2', 'used 1', 'made 3', 'used 2'],
      ...['made 4', 'used 3', 'ended', 'used 4'],
    ]);
  });

  it('gives the items before a failure, and throws it in its turn', async () => {
    const used: number[] = [];
    const use = async (): Promise<void> => {
      for await (const item of oneAhead(counting([], 3))) {
        await settled();
        used.push(item);
      }
    };
    await expect(use()).rejects.toThrow('no 3');
    expect(used).toEqual([1, 2]);
  });

  it('ends the source when the consumer stops, after the step that runs', async () => {
    const notes: string[] = [];
    for await (const item of oneAhead(counting(notes))) {
      if (item === 2) break;
    }
    expect(notes).toEqual(['made 1', 'made 2', 'made 3', 'ended']);
  });
});
