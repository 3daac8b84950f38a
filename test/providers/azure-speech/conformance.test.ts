import { writeFileSync } from 'node:fs';
import { openProvider } from '../../../providers/registry';
import { describeMarked } from '../conformance/marked';
import { ALL_TRAITS, FILE_CALLS, type ConformanceHost } from '../conformance/steps';
import { describeRecordingConformance } from '../conformance/suite';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openSimulatedHost('sk-before');
  const token = `${host.keyFile.path}-sas`;
  // The same signature as the rotated key, so that only the key of the service is refused.
  writeFileSync(token, '?sv=2021-12-02&sp=rcwdl&sig=sk-after');
  const provider = openProvider({
    type: 'azure_speech',
    url: `${host.url}/providers/azure-speech`,
    apiKey: host.keyFile,
    apiVersion: '2024-11-15',
    locales: ['en-US'],
    storage: {
      url: `${host.url}/providers/azure-blob/recordings`,
      prefix: 'folder/',
      sasToken: { path: token, setting: 'sas_token_file' },
    },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { ...host, provider, rotateKey: host.writeKey };
}

describeRecordingConformance(
  'azure_speech',
  {
    names: FILE_CALLS,
    traits: { ...ALL_TRAITS, codes: { auth: '401', refused: 'InvalidRequest' }, cancels: false },
    wireIds: ['n1', 'n2', 'n3'],
  },
  openHost,
);

describeMarked(openHost);
