import { openProvider } from '../../../providers/registry';
import { ALL_TRAITS, FILE_CALLS, type ConformanceHost } from '../conformance/steps';
import { describeRecordingConformance } from '../conformance/suite';
import { openGoogleHost } from '../google-host';
import { closeHosts, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openGoogleHost();
  const provider = openProvider({
    ...{ type: 'google_speech', project: 'project-1', location: 'us', locales: ['en-US'] },
    storage: { bucket: 'bucket', prefix: 'folder/', url: host.api('gcs') },
    ...{ url: host.api('google-speech'), apiKey: host.keyFile },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { ...host, provider };
}

describeRecordingConformance(
  'google_speech',
  {
    names: FILE_CALLS,
    traits: { ...ALL_TRAITS, hasWords: false },
    wireIds: ['n1', 'n2', 'n3'],
  },
  openHost,
);
