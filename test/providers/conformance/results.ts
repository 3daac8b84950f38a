import {
  WIRE_IDS,
  signal,
  uploaded,
  created,
  idOf,
  valueOf,
  ended,
  resultsOf,
  idsOf,
  refusedWith,
  statusOf,
  type CallNames,
  type HostTraits,
  type OpenHost,
} from './steps';
import { RESULTS } from '../calls';

/** Results with every fault. */
export function describeResults(names: CallNames, openHost: OpenHost, traits: HostTraits): void {
  it.each<[string, string[], string[], number]>([
    ['missing', ['missing'], ['n2', 'n3', 'n4'], 0],
    ['doubled', ['doubled'], ['n1', 'n2', 'n3', 'n4', 'n4'], 0],
    ['foreign', ['foreign'], ['n1', 'n2', 'n3', 'n4', 'someone-elses-line'], 0],
    ['cut off', ['cut_off'], ['n1', 'n2', 'n3'], 1],
    ['shuffled', ['shuffled'], WIRE_IDS, 0],
  ])('passes results on that are %s', async (_, faults, expected, malformed) => {
    const { provider, configure } = await openHost();
    await configure({ results: faults });
    const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
    const read = await resultsOf(provider, status);
    expect(idsOf(read.results).sort()).toEqual(expected);
    expect(read.malformed).toBe(malformed);
    if (faults.includes('shuffled')) expect(idsOf(read.results)).not.toEqual(WIRE_IDS);
  });

  it('reads slow results whole, and says that those of a broken connection are not', async () => {
    const { provider, configure } = await openHost();
    const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
    await configure({ faults: [{ call: names.content, bytes_per_sec: 20_000 }] });
    expect(idsOf((await resultsOf(provider, status)).results)).toEqual(WIRE_IDS);
    await configure({ faults: [{ call: names.content, cut: true }] });
    const take = () => undefined;
    expect((await provider.results(status, take, RESULTS)).outcome).toBe('transient');
  });

  it('waits for result files that appear after the end', async () => {
    const { provider, configure } = await openHost();
    await configure({ results_lag_ms: 3_600_000 });
    const bodies = [{}, refusedWith(400), {}, {}];
    const externalId = idOf(await created(provider, await uploaded(provider, bodies)));
    const early = valueOf(await provider.status(externalId, { signal }));
    expect(early).toMatchObject({ state: 'completed', hasAllResults: false });
    await configure({ results_lag_ms: 0 });
    const late = valueOf(await provider.status(externalId, { signal }));
    expect(late).toMatchObject({ state: 'completed', hasAllResults: true });
  });

  it('reads an empty error file', async () => {
    const { provider, configure } = await openHost();
    await configure({ empty_error_file: true });
    const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
    const { results, malformed } = await resultsOf(provider, status);
    expect([idsOf(results), malformed]).toEqual([WIRE_IDS, 0]);
  });

  it('keeps the status of a line that the model refuses', async () => {
    const { provider } = await openHost();
    const bodies = [{}, refusedWith(400), {}, refusedWith(traits.busyStatus)];
    const job = await uploaded(provider, bodies);
    const status = await ended(provider, idOf(await created(provider, job)));
    expect(status.counts).toEqual(traits.counts ? { total: 4, completed: 2, failed: 2 } : null);
    const { results } = await resultsOf(provider, status);
    const byId = new Map(results.map((result) => [result.wireId, statusOf(result)]));
    expect(WIRE_IDS.map((id) => byId.get(id))).toEqual([200, 400, 200, traits.busyStatus]);
  });
}
