import { loadConfig } from '../platform/config';
import { printConfig } from '../platform/config-print';

interface ConfigFlag {
  readonly config?: string;
}

/** `nightshift config check`: says that all is well. @throws config_invalid with every problem */
export function runConfigCheck({ config: file }: ConfigFlag): void {
  loadConfig(file === undefined ? {} : { file });
  process.stdout.write('the configuration is valid\n');
}

/** `nightshift config print`: the settings that hold, as YAML. @throws config_invalid */
export function runConfigPrint({ config: file }: ConfigFlag): void {
  process.stdout.write(printConfig(loadConfig(file === undefined ? {} : { file })));
}
