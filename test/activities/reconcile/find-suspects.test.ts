import { LONG_AGO, open, reconcile, temporal, useReconcileWorld } from './reconcile-world';

useReconcileWorld();

describe('listing by visibility', () => {
  it('costs one call, and describes a thirtieth of the running workflows, in each cycle', async () => {
    for (let i = 0; i < 300; i++) await open('running', { workflow_started_at: LONG_AGO });
    let described = 0;
    for (let cycle = 0; cycle < 30; cycle++) {
      temporal.described = 0;
      const result = await reconcile({ cycleStartedAtMs: cycle * 60_000 });
      expect(result).toMatchObject({ examined: 300, actions: [], nextSeq: null });
      expect(temporal.described).toBe(10);
      described += temporal.described;
    }
    expect([described, temporal.lists]).toEqual([300, 30]);
  });

  it('describes batches that visibility does not list, unless they have just been started', async () => {
    await open('running', { workflow_started_at: new Date() });
    const late = await open('running', { workflow_started_at: LONG_AGO });
    temporal.listed = new Set();
    await reconcile({ cycleStartedAtMs: 0 });
    expect(temporal.described).toBe(1);
    expect(late).toBeDefined();
  });

  it('finds a closed workflow that visibility keeps listing as running', async () => {
    const id = await open('closed', { workflow_started_at: LONG_AGO });
    temporal.listed = new Set([id]);
    for (let cycle = 0; cycle < 30; cycle++) await reconcile({ cycleStartedAtMs: cycle * 60_000 });
    expect(temporal.started).toEqual([id]);
  });

  it.each([
    ['started by an operator', { thorough: true }, undefined],
    ['while visibility does not answer', {}, null],
  ])('is replaced by describing each workflow: %s', async (_what, input, listed) => {
    for (let i = 0; i < 130; i++) await open('running', { workflow_started_at: LONG_AGO });
    temporal.listed = listed;
    const first = await reconcile(input);
    expect(first.examined).toBe(100);
    await reconcile({ ...input, afterSeq: first.nextSeq ?? 0 });
    expect(temporal.described).toBe(130);
  });
});
