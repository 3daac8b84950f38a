import { loadConfig } from '../../platform/config';
import { printConfig } from '../../platform/config-print';
import { configFile, type ConfigFlag } from '../config-flag';

/** `nightshift config check`. @throws config_invalid with every problem found */
export function runConfigCheck(flags: ConfigFlag): void {
  loadConfig(configFile(flags));
  process.stdout.write('the configuration is valid\n');
}

/** `nightshift config print`: the effective settings as YAML. @throws config_invalid */
export function runConfigPrint(flags: ConfigFlag): void {
  process.stdout.write(printConfig(loadConfig(configFile(flags))));
}
