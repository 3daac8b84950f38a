import { openProvider } from '../../../providers/registry';
import { describeConformance } from '../conformance/suite';
import { ALL_TRAITS, FILE_CALLS, type ConformanceHost } from '../conformance/steps';
import { openGoogleHost } from '../google-host';
import { closeHosts, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openGoogleHost();
  const storage = { bucket: 'bucket', prefix: 'nightshift/', url: host.api('gcs') };
  const provider = openProvider({
    ...{ type: 'vertex', project: 'project-1', location: 'us-central1', storage },
    ...{ url: host.api('vertex'), apiKey: host.keyFile },
    ...QUICK,
  });
  host.onClose(() => provider.close());
  return { ...host, provider };
}

describeConformance('vertex', FILE_CALLS, openHost, {
  ...ALL_TRAITS,
  ...{ usage: false, blamesLines: false, namesUnrun: false },
});
