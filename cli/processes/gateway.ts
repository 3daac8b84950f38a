import { loadConfig } from '../../platform/config';
import { createLogger } from '../../platform/logger';
import { configFile, type ConfigFlag } from '../config-flag';
import { lazy } from '../lazy-modules';
import { serve } from './serve';

interface GatewayFlags extends ConfigFlag {
  readonly port?: number;
  readonly host?: string;
}

/** `nightshift gateway`: serves until a signal. @throws config_invalid, and what the gateway fails with */
export async function runGatewayCommand(flags: GatewayFlags): Promise<void> {
  const { port, host } = flags;
  const overrides = { gateway: { port, host } };
  const config = loadConfig({ ...configFile(flags), overrides, needs: ['pools'] });
  const { runGateway } = lazy.gateway();
  const logger = createLogger(config.log, 'gateway');
  await serve({ name: 'gateway', logger, start: () => runGateway(config) });
}
