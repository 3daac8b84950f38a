import { writeFileSync } from 'node:fs';
import { openProvider } from '../../../providers/registry';
import {
  created,
  ended,
  idOf,
  idsOf,
  recordings,
  resultsOf,
  runWith,
  uploaded,
} from '../conformance/steps';
import { signal } from '../calls';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

beforeAll(() => runWith(recordings(['n1', 'n2'])));
afterEach(closeHosts);

async function open() {
  const host = await openSimulatedHost('key');
  const token = `${host.keyFile.path}-sas`;
  writeFileSync(token, 'sig=1');
  const provider = openProvider({
    type: 'azure_speech',
    url: `${host.url}/providers/azure-speech`,
    apiKey: host.keyFile,
    apiVersion: '2024-11-15',
    locales: ['en-US'],
    storage: {
      url: `${host.url}/providers/azure-blob/recordings`,
      prefix: '',
      sasToken: { path: token, setting: 'api_key_file' },
    },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { host, provider };
}

it.each<[string, object]>([
  ['not_sent', { status: 500 }],
  ['not_sent', { drop: true }],
  ['capacity', { status: 429 }],
  ['auth', { status: 401 }],
])('sends no create while the recordings cannot be listed: %s', async (outcome, fault) => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  await host.configure({ faults: [{ call: 'files.list', ...fault }] });
  expect((await created(provider, job)).outcome).toBe(outcome);
  expect((await host.stats()).calls['batches.create']).toBeUndefined();
});

it('lists and creates within the time of one create', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  await host.configure({
    faults: [
      { call: 'files.list', delay_ms: 900 },
      { call: 'batches.create', delay_ms: 10_000 },
    ],
  });
  const startedAt = performance.now();
  expect((await created(provider, job, 1_000)).outcome).toBe('ambiguous');
  // Not the 1,900 ms that both would add up to.
  expect(performance.now() - startedAt).toBeLessThan(1_800);
});

it('refuses a job whose recordings are gone from the container', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  const remoteInputs = [job.remoteInput ?? ''];
  await provider.cleanup({ externalId: null, remoteInputs, resultFiles: [] }, { signal });
  expect(await created(provider, job)).toMatchObject({
    outcome: 'refused',
    failure: { code: 'input_file_not_found', message: '2 recordings are gone from the container' },
  });
  expect((await host.stats()).calls['batches.create']).toBeUndefined();
});

it('leaves a recording open that the service failed to transcribe', async () => {
  const { host, provider } = await open();
  await host.configure({ results: ['missing', 'shuffled'] });
  const status = await ended(provider, idOf(await created(provider, await uploaded(provider))));
  expect(status).toMatchObject({
    counts: { total: 2, completed: 1, failed: 1 },
    hasAllResults: true,
  });
  const { results, malformed } = await resultsOf(provider, status);
  expect([idsOf(results), malformed]).toEqual([['n2'], 0]);
});

it('deletes nothing but the recordings of a job', async () => {
  const { host, provider } = await open();
  const job = await uploaded(provider);
  idOf(await created(provider, job));
  const remoteInputs = ['', 'job_1/en-US/', 'recordings/'];
  const remains = { externalId: null, remoteInputs, resultFiles: [] };
  const before = (await host.stats()).files.length;
  expect((await provider.cleanup(remains, { signal })).outcome).toBe('ok');
  expect((await host.stats()).files.length).toBe(before);
});
