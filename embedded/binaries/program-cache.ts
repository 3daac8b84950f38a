import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../platform/config';

/** A program by its name and the version of its module. */
export interface ProgramVersion {
  /** File name of the program, such as `versitygw`. */
  readonly name: string;
  /** As Go writes it, such as `v1.8.0`. */
  readonly version: string;
}

/**
 * Where downloaded and built programs are kept: `~/.cache/nightshift/<name>/<version>/<name>`, or below
 * `XDG_CACHE_HOME`. The folder of the version has no leading `v`.
 */
export function cachedProgram({ name, version }: ProgramVersion, env: Environment): string {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache');
  return join(cache, 'nightshift', name, version.replace(/^v/, ''), name);
}
