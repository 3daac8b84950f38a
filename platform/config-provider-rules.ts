import { PROVIDER_TYPES, takesEndpoint } from '../core/delegation/provider-types';
import type { DelegateConfig, ProviderConfig } from './config-providers';
import type { RuleBreak } from './config-rule';
import type { Config } from './config-schema';

/** Whether what a provider leaves unanswered runs at the model's gateway. */
export function fallsBack(config: Config, model: string): boolean {
  const own = Object.hasOwn(config.model_gateways ?? {}, model);
  return (config.delegates[model]?.fallback ?? (own ? 'gateway' : 'none')) === 'gateway';
}

/** Broken rules between the settings of delegation. */
export function delegationRules(config: Config): RuleBreak[] {
  return [
    ...Object.entries(config.providers).flatMap(([name, one]) => providerRules(name, one)),
    ...Object.keys(config.delegates).flatMap((model) => delegateRules(config, model)),
  ];
}

/** A look-up and a create need some seconds, of which two are a reserve. */
const MIN_LEASE_MS = 10_000;

function providerRules(name: string, { request_timeout, url, ...one }: ProviderConfig) {
  const { username, password } = new URL(url);
  const rules: [isBroken: boolean, key: string, message: string][] = [
    [
      username !== '' || password !== '',
      'url',
      'user and password in the URL are not sent: remove them and set api_key_name or api_key_file',
    ],
    [
      one.api_key_name !== undefined && one.api_key_file !== undefined,
      'api_key_file',
      'set only one of api_key_name and api_key_file',
    ],
    [one.create_lease < MIN_LEASE_MS, 'create_lease', 'must not be shorter than 10s'],
    [one.poll_initial === 0, 'poll_initial', 'must be longer than 0'],
    [one.poll_initial > one.poll_max, 'poll_initial', 'must not be longer than poll_max'],
    [request_timeout === 0, 'request_timeout', 'must be longer than 0'],
    [one.job_timeout === 0, 'job_timeout', 'must be longer than 0'],
    [one.min_lines > one.max_lines, 'min_lines', 'must not exceed max_lines'],
  ];
  return [
    ...rules.flatMap(([isBroken, key, message]) =>
      isBroken ? [{ path: ['providers', name, key], message }] : [],
    ),
    ...('storage' in one ? storageRules(name, one.storage) : []),
  ];
}

/** Broken rules of the folder of a provider. A token in its address would be printed with the settings. */
function storageRules(
  name: string,
  storage: Extract<ProviderConfig, { storage: unknown }>['storage'],
): RuleBreak[] {
  if (storage.type !== 'azure_container') return [];
  const { url, api_key_name: keyName, api_key_file: keyFile } = storage;
  const path = ['providers', name, 'storage'];
  const token = 'the token of the container is in a file';
  return [
    ...(new URL(url).search === ''
      ? []
      : [{ path: [...path, 'url'], message: `must have no query: ${token}` }]),
    ...((keyName === undefined) === (keyFile === undefined)
      ? [{ path: [...path, 'api_key_file'], message: `set one of it and api_key_name: ${token}` }]
      : []),
  ];
}

function delegateRules(config: Config, model: string): RuleBreak[] {
  const delegate = config.delegates[model];
  if (delegate === undefined) return [];
  const { provider: name, fallback } = delegate;
  const path = ['delegates', model];
  const hasGateway =
    config.global_inference_gateway !== undefined ||
    Object.hasOwn(config.model_gateways ?? {}, model);
  return [
    ...(Object.hasOwn(config.providers, name)
      ? []
      : [{ path: [...path, 'provider'], message: `providers has no entry "${name}"` }]),
    ...(fallback !== 'gateway' || hasGateway
      ? []
      : [{ path: [...path, 'fallback'], message: 'no gateway serves this model: configure one' }]),
    ...translationRules(config.providers[name], delegate).map((key) => ({
      path: [...path, key],
      message: 'has no effect for a provider of this type',
    })),
  ];
}

/** The settings of translation that are set, and that the provider's type has no use for. */
function translationRules(
  provider: ProviderConfig | undefined,
  delegate: DelegateConfig,
): string[] {
  if (provider === undefined) return [];
  const { translates, demandsMaxTokens } = PROVIDER_TYPES[provider.type];
  const isOfRecordings = takesEndpoint(provider.type, '/v1/audio/transcriptions');
  const { drop_params, default_max_tokens, extra_body } = delegate;
  const useless: readonly [key: string, isUseless: boolean][] = [
    ['drop_params', drop_params && !translates],
    ['default_max_tokens', default_max_tokens !== undefined && !demandsMaxTokens],
    ['extra_body', Object.keys(extra_body).length > 0 && (!translates || isOfRecordings)],
  ];
  return useless.flatMap(([key, isUseless]) => (isUseless ? [key] : []));
}
