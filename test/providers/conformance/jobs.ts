import {
  WIRE_IDS,
  signal,
  ok,
  uploaded,
  created,
  idOf,
  valueOf,
  ended,
  remainsOf,
  resultsOf,
  idsOf,
  statusOf,
  reasonOf,
  type HostTraits,
  type OpenHost,
} from './steps';

/** One job from its lines to its removal. */
export function describeLife(openHost: OpenHost, traits: HostTraits): void {
  it('runs a job from its lines to its results, and leaves nothing behind', async () => {
    const { provider, configure, stats } = await openHost();
    await configure({ hold: true });
    const job = await uploaded(provider);
    expect(await provider.find(job, { signal })).toEqual(ok({ kind: 'none' }));
    const externalId = idOf(await created(provider, job));
    const running = valueOf(await provider.status(externalId, { signal }));
    expect(running).toMatchObject({ externalId, state: 'running', isKnownState: true });
    await configure({ hold: false });
    const status = await ended(provider, externalId);
    expect(status).toMatchObject({
      state: 'completed',
      counts: traits.counts ? { total: 4, completed: 4, failed: 0 } : null,
      error: null,
    });
    expect(status.usage?.outputTokens).toBe(traits.usage ? 64 : undefined);
    const { results, malformed } = await resultsOf(provider, status);
    expect([idsOf(results), malformed]).toEqual([WIRE_IDS, 0]);
    expect(results.map(statusOf)).toEqual([200, 200, 200, 200]);
    expect(await provider.cancel(externalId, { signal })).toEqual(ok('ended'));
    const remains = remainsOf(job, status);
    expect((await stats()).files).not.toEqual([]);
    expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
    expect((await stats()).files).toEqual([]);
    expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
  });

  it('takes an unknown state for running, and says so', async () => {
    const { provider, configure } = await openHost();
    await configure({ hold: true, running_word: 'paused' });
    const externalId = idOf(await created(provider, await uploaded(provider)));
    expect(valueOf(await provider.status(externalId, { signal }))).toMatchObject({
      state: 'running',
      isKnownState: false,
      providerState: expect.stringMatching(/^paused$/i),
    });
  });

  it('is refused with the old key after a rotation, and accepted with the new one', async () => {
    const { provider, configure, rotateKey } = await openHost();
    const job = await uploaded(provider);
    await configure({ keys: ['sk-after'] });
    expect((await created(provider, job)).outcome).toBe('auth');
    rotateKey('sk-after');
    expect((await created(provider, job)).outcome).toBe('accepted');
  });

  it('says that an unknown job is gone', async () => {
    const { provider } = await openHost();
    expect((await provider.status('batch_unknown', { signal })).outcome).toBe('gone');
    expect((await provider.cancel('batch_unknown', { signal })).outcome).toBe('gone');
  });
}

/** Ends of jobs other than success. */
export function describeEnds(openHost: OpenHost, traits: HostTraits): void {
  it.each(['expired', 'cancelled'] as const)(
    'tells answers of a job that is %s from lines that did not run',
    async (end) => {
      const { provider, configure } = await openHost();
      await configure({ hold: end === 'cancelled', ends: ['expired'], cancelling_ms: 20 });
      const externalId = idOf(await created(provider, await uploaded(provider)));
      if (end === 'cancelled') {
        expect(await provider.cancel(externalId, { signal })).toEqual(ok('requested'));
      }
      const status = await ended(provider, externalId);
      expect(status).toMatchObject({ state: end, hasAllResults: true });
      const { results } = await resultsOf(provider, status);
      const unrun = [
        ['n3', 'unanswered', end],
        ['n4', 'unanswered', end],
      ];
      const run = [
        ['n1', 'answer', null],
        ['n2', 'answer', null],
      ];
      const hasAnswers = end === 'cancelled' || traits.keepsExpired;
      expect(results.map((result) => [result.wireId, result.kind, reasonOf(result)])).toEqual([
        ...(hasAnswers ? run : []),
        ...(traits.namesUnrun ? unrun : []),
      ]);
    },
  );

  if (!traits.blamesLines) return;
  it('names the lines for which a job failed, and tells a full quota from a failure', async () => {
    const { provider, configure } = await openHost();
    await configure({ ends: ['failed'], failed_lines: [2, 4] });
    const job = await uploaded(provider);
    const blamed = await ended(provider, idOf(await created(provider, job)));
    expect(blamed).toMatchObject({ state: 'failed', isQuotaRefusal: false });
    expect(blamed.lineErrors.map(({ index }) => index)).toEqual([1, 3]);
    await configure({ ends: ['completed'], max_enqueued_tokens: 1 });
    const full = await ended(provider, idOf(await created(provider, job)));
    expect(full).toMatchObject({ state: 'failed', isQuotaRefusal: true, lineErrors: [] });
  });
}
