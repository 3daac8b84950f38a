import type { ProviderKind } from '../../../providers/provider-settings';
import { openProvider } from '../../../providers/registry';
import { openSimulatedHost, QUICK } from '../simulated-host';
import type { ConformanceHost } from './steps';

/** A simulated provider with an adapter on it. @param at the path of its base URL below `/providers/` */
export async function openHost(kind: ProviderKind, at: string): Promise<ConformanceHost> {
  const host = await openSimulatedHost('sk-before');
  const url = `${host.url}/providers/${at}`;
  const provider = openProvider({ ...kind, url, apiKey: host.keyFile, ...QUICK });
  host.onClose(() => provider.close());
  return { ...host, provider, rotateKey: host.writeKey };
}
