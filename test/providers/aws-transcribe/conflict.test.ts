import { openProvider } from '../../../providers/registry';
import { created, idOf, recordings, runWith, uploaded } from '../conformance/steps';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

it('adopts the job that an earlier create has made under its name', async () => {
  runWith(recordings(['n1']));
  const host = await openSimulatedHost('AKIA:secret');
  const provider = openProvider({
    type: 'aws_transcribe',
    url: `${host.url}/providers/transcribe`,
    apiKey: host.keyFile,
    region: 'eu-central-1',
    dataAccessRoleArn: null,
    storage: { bucket: 'bucket', prefix: '', url: `${host.url}/providers/s3` },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  const job = await uploaded(provider);
  const first = idOf(await created(provider, job));
  expect(idOf(await created(provider, job))).toBe(first);
  expect((await host.stats()).creates).toEqual({ [job.jobId]: 1 });
});
