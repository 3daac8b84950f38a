import { loadConfig, type Config } from '../../platform/config';
import { printConfig } from '../../platform/config-print';
import { configFile, type ConfigFlag } from '../config-flag';
import { configNeeds } from './config-needs';

/** `nightshift config check`. @throws config_invalid with every problem found */
export function runConfigCheck(flags: ConfigFlag): void {
  load(flags);
  process.stdout.write('the configuration is valid\n');
}

/** `nightshift config print`: the effective settings as YAML. @throws config_invalid */
export function runConfigPrint(flags: ConfigFlag): void {
  process.stdout.write(printConfig(load(flags)));
}

function load(flags: ConfigFlag): Config {
  const sources = configFile(flags);
  return loadConfig({ ...sources, needs: configNeeds(sources) });
}
