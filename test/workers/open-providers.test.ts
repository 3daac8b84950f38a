import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { loadConfig } from '../../platform/config';
import { openProviders } from '../../workers/open-providers';
import { recordings, runWith, uploadOf } from '../providers/conformance/steps';
import { openGoogleHost } from '../providers/google-host';
import { closeHosts, openSimulatedHost } from '../providers/simulated-host';

beforeAll(() => runWith(recordings(['n1'])));
afterEach(closeHosts);

it('opens the container of Azure Speech with its own token, below the prefix', async () => {
  const host = await openSimulatedHost('key');
  const secrets_dir = path.dirname(host.keyFile.path);
  writeFileSync(path.join(secrets_dir, 'sas'), 'sig=of-the-container');
  const blobs = `${host.url}/providers/azure-blob/calls`;
  const one = {
    type: 'azure_speech',
    url: `${host.url}/providers/azure-speech`,
    api_key_file: host.keyFile.path,
    storage: { type: 'azure_container', url: blobs, prefix: 'night', api_key_name: 'sas' },
  };
  const overrides = { secrets_dir, providers: { one } };
  const providers = openProviders(loadConfig({ env: {}, needs: [], overrides }));
  host.onClose(() => providers.close());
  await host.configure({ keys: ['of-the-container'] });
  const api = providers.get('one')?.api;
  if (api === undefined) throw new Error('there is no provider');
  const uploaded = await uploadOf(api);
  if (uploaded.outcome !== 'ok') throw new Error(uploaded.failure.message);
  const blob = `${blobs}/night/${uploaded.value}n1.verbose_json.wav?sig=of-the-container`;
  expect((await fetch(blob)).status).toBe(200);
});

it.each<[string, object]>([
  ['vertex', {}],
  ['google_speech', { locales: ['en-US'] }],
])('opens the bucket of %s below the prefix', async (type, own) => {
  const host = await openGoogleHost();
  const one = {
    ...{ type, project: 'project-1', location: 'us', ...own },
    ...{ url: host.api(type.replace('_', '-')), api_key_file: host.keyFile.path },
    storage: { type: 'gcs', bucket: 'bucket', prefix: 'night', url: host.api('gcs') },
  };
  const providers = openProviders(
    loadConfig({ env: {}, needs: [], overrides: { providers: { one } } }),
  );
  host.onClose(() => providers.close());
  const api = providers.get('one')?.api;
  if (api === undefined) throw new Error('there is no provider');
  const job = { jobId: `job_${'a'.repeat(32)}`, storeId: 's', model: 'm', lines: 0, hops: 0 };
  const input = { bytes: 0, open: async function* () {} };
  const call = { signal: new AbortController().signal, openFile: async () => null };
  const uploaded = await api.upload({ ...job, endpoint: '/v1' }, input, call);
  expect(uploaded).toMatchObject({
    outcome: 'ok',
    value: expect.stringMatching(/^gs:\/\/bucket\/night\/job_a{32}\//),
  });
});
