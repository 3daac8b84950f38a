import { objectStoreRules } from './config-object-store';
import { postgresRule } from './config-postgres';
import { gatewaySectionRules } from './config-gateway-rules';
import { delegationRules } from './config-provider-rules';
import type { RuleBreak } from './config-rule';
import type { Config } from './config-schema';
import { temporalRules } from './config-temporal-rules';
import { isLoopbackName } from './own-names';
import { RESERVED_HEADERS } from './reserved-headers';

/** Settings that a command requires. */
export type ConfigNeed = 'gateway' | 'pools' | 'postgres';

/** All broken rules between settings (docs/design/configuration.md#rules-between-settings). */
export function checkRules(config: Config, needs: readonly ConfigNeed[]): RuleBreak[] {
  return [
    ...modeRule(config, needs.includes('gateway') && config.worker.roles.includes('exec')),
    ...postgresRule(config.postgres, needsPostgres(config, needs)),
    ...gatewaysOf(config).flatMap(([path, gateway]) => gatewayRules(path, gateway)),
    ...roleRule(config),
    ...delegationRules(config),
    ...limitRules(config),
    ...arrivalRules(config),
    ...bindRule(config),
    ...gatewaySectionRules(config.gateway, needs.includes('pools')),
    ...(needs.includes('pools') ? gatewayBindRule(config) : []),
    ...passThroughRule(config),
    ...temporalRules(config.temporal),
    ...objectStoreRules(config.object_store),
  ];
}

/** The gateway reads nothing but API keys from PostgreSQL. */
function needsPostgres({ auth }: Config, needs: readonly ConfigNeed[]): boolean {
  return needs.includes('postgres') || (needs.includes('pools') && auth.mode === 'api_key');
}

/** Exactly one of the two modes, or only delegates (docs/design/configuration.md#gateway-modes). */
function modeRule(config: Config, needed: boolean): RuleBreak[] {
  const global = config.global_inference_gateway !== undefined;
  const perModel = config.model_gateways !== undefined;
  if (global && perModel) {
    const message = 'set only one of global_inference_gateway and model_gateways';
    return [{ path: ['model_gateways'], message }];
  }
  if (perModel && Object.keys(config.model_gateways ?? {}).length === 0) {
    return [{ path: ['model_gateways'], message: 'name at least one model' }];
  }
  const delegates = Object.keys(config.delegates).length > 0;
  if (global || perModel || delegates || !needed) return [];
  const message =
    'required: set it, or model_gateways or delegates, to say where requests are sent';
  return [{ path: ['global_inference_gateway'], message }];
}

type AnyGateway = NonNullable<Config['model_gateways']>[string];

function gatewaysOf(config: Config): [string[], AnyGateway][] {
  const found: [string[], AnyGateway][] = [];
  if (config.global_inference_gateway !== undefined) {
    found.push([['global_inference_gateway'], config.global_inference_gateway]);
  }
  for (const [model, gateway] of Object.entries(config.model_gateways ?? {})) {
    found.push([['model_gateways', model], gateway]);
  }
  return found;
}

function gatewayRules(path: string[], gateway: AnyGateway): RuleBreak[] {
  const { username, password } = new URL(gateway.url);
  const { tls_client_cert_file: clientCert, tls_client_key_file: clientKey } = gateway;
  const rules: [isBroken: boolean, key: string, message: string][] = [
    [
      username !== '' || password !== '',
      'url',
      'user and password in the URL are not sent: remove them and set api_key_name or api_key_file',
    ],
    [
      gateway.initial_backoff > gateway.max_backoff,
      'initial_backoff',
      'must not be longer than max_backoff',
    ],
    [gateway.request_timeout === 0, 'request_timeout', 'must be longer than 0'],
    [gateway.audio_request_timeout === 0, 'audio_request_timeout', 'must be longer than 0'],
    [
      gateway.api_key_name !== undefined && gateway.api_key_file !== undefined,
      'api_key_file',
      'set only one of api_key_name and api_key_file',
    ],
    [
      (clientCert === undefined) !== (clientKey === undefined),
      'tls_client_cert_file',
      'a client certificate needs both tls_client_cert_file and tls_client_key_file',
    ],
  ];
  return rules.flatMap(([isBroken, key, message]) =>
    isBroken ? [{ path: [...path, key], message }] : [],
  );
}

function roleRule({ worker }: Config): RuleBreak[] {
  if (new Set(worker.roles).size === worker.roles.length) return [];
  return [{ path: ['worker', 'roles'], message: 'names a role twice' }];
}

function limitRules(config: Config): RuleBreak[] {
  const { max_line_bytes, max_file_bytes } = config.limits;
  if (max_line_bytes <= max_file_bytes) return [];
  return [{ path: ['limits', 'max_line_bytes'], message: 'must not exceed limits.max_file_bytes' }];
}

/** Time limits for the arrival of a request; with 0, no request could arrive in time. */
function arrivalRules({ api }: Config): RuleBreak[] {
  return (['header_timeout', 'body_grace'] as const).flatMap((key) =>
    api[key] > 0 ? [] : [{ path: ['api', key], message: 'must be longer than 0' }],
  );
}

function passThroughRule({ auth, pass_through_headers: names }: Config): RuleBreak[] {
  return names.flatMap((given, index) => {
    const message = whyNotPassed(given.toLowerCase(), auth);
    return message === null ? [] : [{ path: ['pass_through_headers', String(index)], message }];
  });
}

/** Reported as an error, because an operator who lists a header expects that model servers receive it. */
function whyNotPassed(name: string, auth: Config['auth']): string | null {
  if (RESERVED_HEADERS.has(name)) {
    return `${name} is set by Nightshift for every request and cannot be passed through: remove it`;
  }
  // The key of our own API must not reach model servers.
  if (auth.mode !== 'api_key' || name !== 'authorization') return null;
  return 'with auth.mode api_key, authorization holds the key of this API, which must not be passed on: remove it';
}

function bindRule(config: Config): RuleBreak[] {
  const message = publicBindFault(config);
  return message === null ? [] : [{ path: ['api', 'host'], message }];
}

/** Without authentication, everyone who can reach the gateway can use the model servers. */
function gatewayBindRule({ gateway, auth }: Config): RuleBreak[] {
  if (auth.mode !== 'none' || auth.allow_public_bind || isLoopbackName(gateway.host)) return [];
  const message =
    'auth.mode is none, so everyone who reaches this address could use the model servers: bind to 127.0.0.1, choose another auth.mode, or set auth.allow_public_bind: true';
  return [{ path: ['gateway', 'host'], message }];
}

/**
 * The fault of the API's listening address, or null. Without authentication, everyone who can reach the
 * port can read every batch (docs/design/configuration.md#listening-addresses).
 */
export function publicBindFault({ api, auth }: Pick<Config, 'api' | 'auth'>): string | null {
  if (auth.mode !== 'none' || auth.allow_public_bind || isLoopbackName(api.host)) return null;
  return 'auth.mode is none, so everyone who reaches this address could read every batch: bind to 127.0.0.1, choose another auth.mode, or set auth.allow_public_bind: true';
}
