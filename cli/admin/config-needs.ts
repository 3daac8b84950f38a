import {
  type Config,
  type ConfigNeed,
  type ConfigSources,
  findSettings,
} from '../../platform/config';

/**
 * The settings that the processes of these sources need: pools and audio workers are a gateway's, the other two a
 * worker's.
 */
export function configNeeds(sources: ConfigSources): ConfigNeed[] {
  const isSet = (path: string): boolean => findSettings(sources, [path]).size > 0;
  if (!isSet('gateway.pools') && !isSet('gateway.audio')) return ['gateway'];
  const sends = isSet('global_inference_gateway') || isSet('model_gateways');
  return sends ? ['gateway', 'pools'] : ['pools'];
}

/** Whether only a gateway can use these settings. */
export function isForGatewayOnly(config: Config): boolean {
  const { gateway, global_inference_gateway: all, model_gateways: each } = config;
  const hasServers = Object.keys(gateway.pools).length > 0 || gateway.audio !== undefined;
  return hasServers && all === undefined && each === undefined;
}
