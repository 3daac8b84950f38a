import type { Config } from './config-schema';
import { originCheck } from './own-names';
import type { ObservabilityOptions } from './observability-server';

/** Address, origin check and settings of the health and metrics port of one process. */
export function observabilityPlace(
  config: Config,
  process: 'api' | 'worker',
): Pick<ObservabilityOptions, 'host' | 'port' | 'hostSetting' | 'portSetting' | 'originCheck'> {
  const { observability_host: host, observability_port: port } = config[process];
  return {
    host,
    port,
    hostSetting: `${process}.observability_host`,
    portSetting: `${process}.observability_port`,
    originCheck: originCheck(config, host),
  };
}
