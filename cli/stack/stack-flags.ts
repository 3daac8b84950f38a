import type { StoreKind } from '../../embedded/s3/store-kind';
import type { ConfigSources } from '../../platform/config';

/** Flags that `dev` and `demo` share. */
export interface StackFlags {
  readonly config?: string;
  readonly dataDir: string;
  readonly port?: number;
  readonly host?: string;
  /** Where to keep objects. */
  readonly store?: StoreKind;
  /** Flag of `dev` only. */
  readonly headless?: boolean;
  /** False with `--no-simulator`. */
  readonly simulator: boolean;
  /** False with `--no-gateway`. */
  readonly gateway: boolean;
}

/** The sources of settings that the flags name. */
export function sourcesOf({ config, port, host }: StackFlags): ConfigSources {
  const overrides = { api: { port, host } };
  return config === undefined ? { overrides } : { file: config, overrides };
}
