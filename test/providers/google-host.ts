import { AccessTokens } from '../../providers/google-oauth/access-tokens';
import { serviceAccountKey } from './service-account-key';
import { openSimulatedHost, QUICK, type SimulatedHost } from './simulated-host';

/** A simulator whose key file holds a service account. */
export interface GoogleHost extends SimulatedHost {
  /** Base URL of a simulated API. */
  api(prefix: string): string;
  /** Replaces the key of the service account by one with this id. */
  rotateKey(keyId: string): void;
  /** Tokens of the service account. */
  openTokens(): AccessTokens;
}

/** Starts a simulator for APIs of Google. */
export async function openGoogleHost(): Promise<GoogleHost> {
  const host = await openSimulatedHost('');
  const api = (prefix: string) => `${host.url}/providers/${prefix}`;
  const rotateKey = (keyId: string) =>
    host.writeKey(serviceAccountKey(keyId, `${api('google-oauth')}/token`));
  rotateKey('sk-before');
  const openTokens = () => {
    const tokens = new AccessTokens(host.keyFile, 'scope-1', QUICK);
    host.onClose(() => tokens.close());
    return tokens;
  };
  return { ...host, api, rotateKey, openTokens };
}
