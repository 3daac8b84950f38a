import { Option } from 'commander';

/** Flags of a command that reads the settings. */
export interface ConfigFlag {
  readonly config?: string;
}

/** The flag that names the file of settings. */
export function configOption(): Option {
  return new Option(
    '-c, --config <file>',
    'YAML file with settings; environment variables override it',
  );
}

/** The source of settings that the flag names, for `loadConfig`. */
export function configFile({ config }: ConfigFlag): { file?: string } {
  return config === undefined ? {} : { file: config };
}
