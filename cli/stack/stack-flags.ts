import type { ConfigSources } from '../../platform/config';

/** Flags that `dev` and `demo` share. */
export interface StackFlags {
  readonly config?: string;
  readonly dataDir: string;
  readonly port?: number;
  readonly host?: string;
  /** Only `dev` has it. */
  readonly headless?: boolean;
  /** `--no-simulator` makes it false. */
  readonly simulator: boolean;
}

/** The settings' sources as the flags tell them. */
export function sourcesOf({ config, port, host }: StackFlags): ConfigSources {
  const overrides = { api: { port, host } };
  return config === undefined ? { overrides } : { file: config, overrides };
}
