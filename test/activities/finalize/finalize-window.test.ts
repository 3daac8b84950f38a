import { FinalizeWindow } from '../../../activities/finalize/finalize-window';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { BatchPlace } from './fixtures';

const SECOND = 1_000;

/** Attempts that begin so many seconds after one another. The state travels in heartbeats. */
function spend(options: { isCounted: boolean }, seconds: readonly number[]): FinalizeWindow {
  let earlier: unknown;
  let nowMs = 1_000_000;
  let window = new FinalizeWindow({ windowMs: 60 * SECOND, earlier, ...options });
  earlier = window.beat(nowMs);
  for (const pause of seconds) {
    nowMs += pause * SECOND;
    window = new FinalizeWindow({ windowMs: 60 * SECOND, earlier, ...options });
    earlier = window.beat(nowMs);
  }
  return window;
}

describe('the window of a finalization', () => {
  it('is over when workers have tried for its whole length', () => {
    expect(spend({ isCounted: true }, [10, 10, 10, 10, 10]).isOver).toBe(false);
    expect(spend({ isCounted: true }, [10, 10, 10, 10, 10, 10]).isOver).toBe(true);
  });

  it('does not run while no worker exists', () => {
    expect(spend({ isCounted: true }, [3_600, 1]).isOver).toBe(false);
  });

  it('does not run before a stop', () => {
    expect(spend({ isCounted: false }, new Array<number>(1_000).fill(10)).isOver).toBe(false);
  });

  it('counts the pauses between tries that fail at once, from the cancel on', () => {
    let earlier: unknown;
    const overAfter = [...Array(10).keys()].findIndex((tries) => {
      const window = new FinalizeWindow({ windowMs: 60 * SECOND, earlier, isCounted: false });
      window.beat(tries * 10 * SECOND);
      // The row is read after the first heartbeat, and has a stop cause.
      window.count();
      earlier = window.beat(tries * 10 * SECOND + 1);
      return window.isOver;
    });
    expect(overAfter).toBe(6);
  });

  it('is not shortened by a clock that goes backwards or details of another shape', () => {
    expect(spend({ isCounted: true }, [20, -500, 20]).isOver).toBe(false);
    const odd = new FinalizeWindow({ windowMs: 1, earlier: { bytes: 1 }, isCounted: true });
    expect(odd.beat(5)).toEqual({ spentMs: 0, atMs: 5, counted: true });
  });
});

describe('a finalization that fails', () => {
  let place: BatchPlace;

  beforeEach(async () => {
    place = await BatchPlace.create([{ model: 'm' }]);
    place.windowMs = 5 * SECOND;
    place.onRow = () => Promise.reject(new Error('no answer'));
  });
  afterEach(() => place.remove());

  function environment(spentMs: number) {
    const heartbeatDetails = { bytes: 0, spentMs, atMs: Date.now() };
    const env = new MockActivityEnvironment(
      { heartbeatDetails },
      { logger: new DefaultLogger('ERROR') },
    );
    const beats: { spentMs: number }[] = [];
    env.on('heartbeat', (details: { spentMs: number }) => beats.push(details));
    return { env, beats };
  }

  it('is retried within its window, and reports the time spent to the next attempt', async () => {
    const { env, beats } = environment(4_000);
    await expect(place.finalize('cancelled', undefined, env)).rejects.toThrow('no answer');
    expect(beats.at(-1)?.spentMs).toBeGreaterThanOrEqual(4_000);
  });

  it('is given up once the window is over', async () => {
    await expect(
      place.finalize('cancelled', undefined, environment(5_000).env),
    ).rejects.toMatchObject({ type: 'finalize_window_over', nonRetryable: true });
  });

  it('is retried without a limit if every line is settled and there is no stop', async () => {
    await expect(place.finalize(null, undefined, environment(5_000).env)).rejects.toThrow(
      'no answer',
    );
  });

  it('is given up after its window if the row has a stop cause that the workflow did not pass', async () => {
    place.onRow = () => Promise.resolve();
    place.rowCause = 'cancelled';
    await expect(place.finalize(null, undefined, environment(5_000).env)).rejects.toMatchObject({
      type: 'finalize_window_over',
    });
  });
});
