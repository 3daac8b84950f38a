import type { RuleBreak } from './config-rule';
import type { Config } from './config-schema';

type Temporal = Config['temporal'];
type TlsObject = Exclude<Temporal['tls'], boolean | undefined>;

/** Rules between the settings below `temporal`. */
export function temporalRules(temporal: Temporal): RuleBreak[] {
  const { api_key: key, api_key_file: keyFile, tls } = temporal;
  const broken: [isBroken: boolean, key: string, message: string][] = [
    [
      key !== undefined && keyFile !== undefined,
      'api_key_file',
      'set only one of temporal.api_key and temporal.api_key_file',
    ],
    [
      (key !== undefined || keyFile !== undefined) && tls === false,
      'tls',
      'the API key would be sent in clear text: remove tls: false (a key turns TLS on), or remove the key',
    ],
  ];
  const found = broken.flatMap(([isBroken, name, message]) =>
    isBroken ? [{ path: ['temporal', name], message }] : [],
  );
  return typeof tls === 'object' ? [...found, ...tlsRules(tls)] : found;
}

function tlsRules(tls: TlsObject): RuleBreak[] {
  const hasCert = isGiven(tls, 'client_cert');
  const hasKey = isGiven(tls, 'client_key');
  const broken: [isBroken: boolean, key: string, message: string][] = [
    ...(['ca_cert', 'client_cert', 'client_key'] as const).map(
      (what): [boolean, string, string] => [
        tls[`${what}_file`] !== undefined && tls[`${what}_data`] !== undefined,
        `${what}_data`,
        `set only one of ${what}_file and ${what}_data`,
      ],
    ),
    [
      hasCert !== hasKey,
      hasCert ? 'client_cert_file' : 'client_key_file',
      'a client certificate needs both client_cert_file and client_key_file (or client_cert_data and client_key_data)',
    ],
    [
      tls.disable_host_verification === true,
      'disable_host_verification',
      'workers always verify the server: set server_name to the name in its certificate, and ca_cert_file to its authority',
    ],
  ];
  return broken.flatMap(([isBroken, name, message]) =>
    isBroken ? [{ path: ['temporal', 'tls', name], message }] : [],
  );
}

function isGiven(tls: TlsObject, what: 'client_cert' | 'client_key'): boolean {
  return tls[`${what}_file`] !== undefined || tls[`${what}_data`] !== undefined;
}
