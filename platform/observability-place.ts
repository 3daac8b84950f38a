import type { Config } from './config-schema';
import { apiOriginRules, gatewayOriginRules, originCheck } from './own-names';
import type { ObservabilityOptions } from './observability-server';

/** Address, origin check and settings of the health and metrics port of one process. */
export function observabilityPlace(
  config: Config,
  process: 'api' | 'gateway' | 'worker',
): Pick<ObservabilityOptions, 'host' | 'port' | 'hostSetting' | 'portSetting' | 'originCheck'> {
  const { observability_host: host, observability_port: port } = config[process];
  const rules = process === 'gateway' ? gatewayOriginRules(config) : apiOriginRules(config);
  return {
    host,
    port,
    hostSetting: `${process}.observability_host`,
    portSetting: `${process}.observability_port`,
    originCheck: originCheck(rules, host),
  };
}
