import { openProvider } from '../../../providers/registry';
import { ALL_TRAITS, FILE_CALLS, type ConformanceHost } from '../conformance/steps';
import { describeConformance } from '../conformance/suite';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openSimulatedHost('sk-before:secret');
  const provider = openProvider({
    type: 'bedrock',
    url: `${host.url}/providers/bedrock`,
    apiKey: host.keyFile,
    region: 'eu-central-1',
    roleArn: 'arn:aws:iam::000000000000:role/batch',
    storage: { bucket: 'bucket', prefix: 'folder/', url: `${host.url}/providers/s3` },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { ...host, provider, rotateKey: (key) => host.writeKey(`${key}:secret`) };
}

describeConformance('bedrock', FILE_CALLS, openHost, {
  ...ALL_TRAITS,
  codes: { auth: 'UnrecognizedClientException', refused: 'ValidationException' },
  blamesLines: false,
  namesUnrun: false,
});
