import { createRestartPolicy } from '../../../embedded/supervision/restart-policy';

describe('the restart policy of a component', () => {
  it('doubles the pause while the component dies before it is ready', () => {
    const decide = createRestartPolicy();
    const pauses = [0, 1, 2, 3].map((nowMs) => decide(false, nowMs));
    expect(pauses).toEqual([250, 500, 1_000, 2_000].map((inMs) => ({ kind: 'restart', inMs })));
  });

  it('gives up after five deaths within 30 s without being ready', () => {
    const decide = createRestartPolicy();
    for (let death = 0; death < 4; death++) decide(false, death * 7_000);
    expect(decide(false, 29_999)).toEqual({ kind: 'give up', deaths: 5, withinMs: 30_000 });
  });

  it('forgets deaths after 30 s', () => {
    const decide = createRestartPolicy();
    for (let death = 0; death < 4; death++) decide(false, death);
    expect(decide(false, 30_003)).toEqual({ kind: 'restart', inMs: 250 });
  });

  it('restarts a component that was ready after the shortest pause, however often it dies', () => {
    const decide = createRestartPolicy();
    for (let death = 0; death < 100; death++) {
      expect(decide(true, death)).toEqual({ kind: 'restart', inMs: 250 });
    }
  });
});
