import { openProvider } from '../../../providers/registry';
import { describeMarked } from '../conformance/marked';
import { ALL_TRAITS, FILE_CALLS, type ConformanceHost } from '../conformance/steps';
import { describeRecordingConformance } from '../conformance/suite';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openSimulatedHost('sk-before:secret');
  const provider = openProvider({
    type: 'aws_transcribe',
    url: `${host.url}/providers/transcribe`,
    apiKey: host.keyFile,
    region: 'eu-central-1',
    dataAccessRoleArn: null,
    storage: { bucket: 'bucket', prefix: 'folder/', url: `${host.url}/providers/s3` },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { ...host, provider, rotateKey: (key) => host.writeKey(`${key}:secret`) };
}

describeRecordingConformance(
  'aws_transcribe',
  {
    // A job is looked up by its name.
    names: { ...FILE_CALLS, list: 'batches.retrieve' },
    traits: {
      ...ALL_TRAITS,
      codes: { auth: 'UnrecognizedClientException', refused: 'BadRequestException' },
      lists: false,
      cancels: false,
    },
    wireIds: ['n1'],
  },
  openHost,
);

describeMarked(openHost);
