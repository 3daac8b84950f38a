import type { IdempotentResult, JobStatus, Provider } from '../../../providers/provider';
import { until } from '../../support/until';
import {
  foundIds,
  lineIds,
  remainsOf,
  signal,
  ok,
  uploadOf,
  uploaded,
  created,
  idOf,
  valueOf,
  ended,
  resultsOf,
  idsOf,
  type CallNames,
  type HostTraits,
  type OpenHost,
  type ReadyJob,
} from './steps';
import { RESULTS } from '../calls';

type Repeatable = (
  provider: Provider,
  job: ReadyJob,
  status: JobStatus,
) => Promise<IdempotentResult<unknown>>;

/** Look-ups after creates that ended in every way. */
export function describeLookUps(names: CallNames, openHost: OpenHost, traits: HostTraits): void {
  it.each<[string, object]>([
    ['the connection ends after it was accepted', { drop: true, accepts: true }],
    ['it is answered with 503 after it was accepted', { status: 503, accepts: true }],
    ['the answer is cut off', { cut: true }],
  ])('finds the job of an ambiguous create: %s', async (_, fault) => {
    const { provider, configure, stats } = await openHost();
    const job = await uploaded(provider);
    await configure({ faults: [{ call: names.create, times: 1, ...fault }] });
    expect((await created(provider, job)).outcome).toBe('ambiguous');
    const [externalId, ...others] = await foundIds(provider, job);
    expect(others).toEqual([]);
    const status = valueOf(await provider.status(externalId ?? '', { signal }));
    expect(idsOf((await resultsOf(provider, status)).results)).toEqual(lineIds());
    expect((await stats()).creates).toEqual({ [traits.marker]: 1 });
  });

  it('finds a job that is accepted after its create has timed out', async () => {
    const { provider, configure, stats } = await openHost();
    const job = await uploaded(provider);
    await configure({ faults: [{ call: names.create, delay_ms: 300 }] });
    expect((await created(provider, job, 50)).outcome).toBe('ambiguous');
    await until(async () => (await foundIds(provider, job)).length > 0, 5_000, 'the late job');
    expect((await stats()).creates).toEqual({ [traits.marker]: 1 });
  });

  describeLateJobs(names, openHost, traits);
}

function describeLateJobs(names: CallNames, openHost: OpenHost, traits: HostTraits): void {
  it('finds nothing of a create that was lost', async () => {
    const { provider, configure } = await openHost();
    const job = await uploaded(provider);
    await configure({ faults: [{ call: names.create, times: 1, drop: true }] });
    expect((await created(provider, job)).outcome).toBe('ambiguous');
    expect(await provider.find(job, { signal })).toEqual(ok({ kind: 'none' }));
  });

  const onLists = traits.lists ? it : () => undefined;
  onLists('finds a job that is listed late, later', async () => {
    const { provider, configure } = await openHost();
    const job = await uploaded(provider);
    await configure({ list_lag_ms: 3_600_000 });
    const externalId = idOf(await created(provider, job));
    expect(await provider.find(job, { signal })).toEqual(ok({ kind: 'none' }));
    await configure({ list_lag_ms: 0 });
    expect(await foundIds(provider, job)).toEqual([externalId]);
  });

  it('finds a job behind the jobs of others, on small pages', async () => {
    const { provider, configure } = await openHost();
    await configure({ max_page: 1 });
    const job = await uploaded(provider);
    const externalId = idOf(await created(provider, job));
    const others: string[] = [];
    for (const digit of ['1', '2', '3']) {
      const jobId = `job_${digit.repeat(32)}`;
      others.push(idOf(await created(provider, await uploaded(provider, undefined, jobId))));
      const elsewhere = await uploaded(provider);
      others.push(idOf(await created(provider, { ...elsewhere, storeId: `store-${digit}` })));
    }
    // If only results tell jobs apart, all of the same size may be it. They are listed newest first.
    const isProven = provider.capabilities.find !== 'window';
    const expected = isProven ? [externalId] : [...others.reverse(), externalId];
    expect(await foundIds(provider, job)).toEqual(expected);
  });
}

/** The class of each failure. */
export function describeFailures(
  names: CallNames,
  openHost: OpenHost,
  { codes, cancels, uploads, deletes }: HostTraits,
): void {
  it.each<[string, object, object]>([
    ['capacity', { status: 429, retry_after_sec: 7 }, { retryAfterMs: 7_000 }],
    ['auth', { status: 401 }, { status: 401, code: codes.auth }],
    ['refused', { status: 400, code: 'invalid_value' }, { code: codes.refused }],
    ['ambiguous', { status: 500 }, { status: 500 }],
    ['ambiguous', { status: 503 }, { status: 503 }],
    ['ambiguous', { drop: true }, { status: null }],
  ])('classifies a create as %s: %j', async (outcome, fault, failure) => {
    const { provider, configure, stats } = await openHost();
    const job = await uploaded(provider);
    await configure({ faults: [{ call: names.create, ...fault }] });
    expect(await created(provider, job)).toMatchObject({ outcome, failure });
    const { calls, creates } = await stats();
    expect([calls[names.create], creates]).toEqual([1, {}]);
  });

  const REPEATABLE: readonly [call: keyof CallNames, make: Repeatable][] = [
    ['upload', (provider) => uploadOf(provider)],
    ['list', (provider, job) => provider.find(job, { signal })],
    ['status', (provider, _, { externalId }) => provider.status(externalId, { signal })],
    ['cancel', (provider, _, { externalId }) => provider.cancel(externalId, { signal })],
    ['content', (provider, _, status) => provider.results(status, () => undefined, RESULTS)],
    [
      'remove',
      (provider, job, status) => {
        const isInline = provider.capabilities.input === 'inline';
        const remains = remainsOf(job, status);
        // One deletion for each removal: of the input, or of the job with all that belongs to it.
        const one = isInline ? remains : { ...remains, externalId: null, resultFiles: [] };
        return provider.cleanup(one, { signal });
      },
    ],
  ];
  const offered: readonly [call: keyof CallNames, isOffered: boolean][] = [
    ['cancel', cancels],
    ['upload', uploads],
    ['remove', deletes],
  ];
  const lacking = offered.filter(([, isOffered]) => !isOffered).map(([call]) => call);
  const made = REPEATABLE.filter(([call]) => !lacking.includes(call));
  it.each(made)('classifies each failure of the call: %s', async (call, make) => {
    const { provider, configure } = await openHost();
    const job = await uploaded(provider);
    const status = await ended(provider, idOf(await created(provider, job)));
    const outcomes: string[] = [];
    for (const fault of [{ status: 429 }, { status: 500 }, { status: 401 }, { drop: true }]) {
      await configure({ faults: [{ call: names[call], ...fault }] });
      outcomes.push((await make(provider, job, status)).outcome);
    }
    expect(outcomes).toEqual(['capacity', 'transient', 'auth', 'transient']);
    await configure({ faults: [] });
    expect((await make(provider, job, status)).outcome).toBe('ok');
  });
}
