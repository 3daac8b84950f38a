import { openProvider } from '../../../providers/registry';
import type { Provider } from '../../../providers/provider';
import { created, ended, idOf, JOB_ID, resultsOf, signal, uploaded } from '../conformance/steps';
import { openGoogleHost, type GoogleHost } from '../google-host';
import { closeHosts, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function open(prefix = 'nightshift/'): Promise<{ host: GoogleHost; provider: Provider }> {
  const host = await openGoogleHost();
  return { host, provider: providerAt(host, prefix) };
}

function providerAt(host: GoogleHost, prefix: string): Provider {
  const storage = { bucket: 'bucket', prefix, url: host.api('gcs') };
  const provider = openProvider({
    ...{ type: 'vertex', project: 'project-1', location: 'us-central1', storage },
    ...{ url: host.api('vertex'), apiKey: host.keyFile },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return provider;
}

const LAST_HOUR = { storeId: 'store-0', sinceMs: Date.now() - 3_600_000 };

it('lists the open jobs of this installation since a time', async () => {
  const { host, provider } = await open();
  const marked = (change: object = {}) =>
    provider.listMarked?.({ ...LAST_HOUR, ...change }, { signal });
  await ended(provider, idOf(await created(provider, await uploaded(provider))));
  expect(await marked()).toEqual({ outcome: 'ok', value: [] });
  await host.configure({ hold: true, max_page: 1 });
  const ids = ['a', 'b'].map((digit) => `job_${digit.repeat(32)}`);
  const jobs = [];
  for (const jobId of ids) {
    const externalId = idOf(await created(provider, await uploaded(provider, undefined, jobId)));
    jobs.unshift({ externalId, jobId });
  }
  expect(await marked()).toEqual({ outcome: 'ok', value: jobs });
  expect(await marked({ storeId: 'store-1' })).toEqual({ outcome: 'ok', value: [] });
  expect(await marked({ sinceMs: Date.now() + 60_000 })).toEqual({ outcome: 'ok', value: [] });
});

it('does not read results outside its folder', async () => {
  const { host, provider } = await open();
  const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
  const elsewhere = providerAt(host, 'other/');
  const call = { signal, endpoint: '/v1/chat/completions', model: 'm', createdSec: 1 };
  const read = await elsewhere.results(status, () => undefined, call);
  expect(read).toMatchObject({ outcome: 'auth', failure: { code: 'other_folder' } });
  expect((await resultsOf(provider, status)).results).toHaveLength(4);
});

it('deletes what repeated uploads have left, and nothing of other jobs', async () => {
  const { host, provider } = await open();
  const other = await uploaded(provider, undefined, `job_${'d'.repeat(32)}`);
  await uploaded(provider);
  const job = await uploaded(provider);
  const { resultFiles } = await ended(provider, idOf(await created(provider, job)));
  expect((await host.stats()).files).toHaveLength(4);
  const remains = { externalId: null, remoteInputs: [job.remoteInput ?? ''], resultFiles };
  expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
  const kept = (await host.stats()).files;
  expect(kept).toHaveLength(1);
  expect(other.remoteInput).not.toContain(JOB_ID);
});
