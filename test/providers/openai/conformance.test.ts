import { openProvider } from '../../../providers/registry';
import { describeConformance } from '../conformance/suite';
import type { ConformanceHost } from '../conformance/steps';
import { closeHosts, openSimulatedHost, QUICK } from '../simulated-host';

afterEach(closeHosts);

async function openHost(): Promise<ConformanceHost> {
  const host = await openSimulatedHost('sk-before');
  const url = `${host.url}/providers/openai/v1`;
  const provider = openProvider({ type: 'openai', url, apiKey: host.keyFile, ...QUICK });
  host.onClose(() => provider.close());
  return { ...host, provider, rotateKey: host.writeKey };
}

describeConformance(
  'openai',
  {
    upload: 'files.create',
    create: 'batches.create',
    list: 'batches.list',
    status: 'batches.retrieve',
    cancel: 'batches.cancel',
    content: 'files.content',
    remove: 'files.delete',
  },
  openHost,
);
