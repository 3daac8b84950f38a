import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Where downloaded and built programs are kept: `~/.cache/nightshift/temporal/<version>/temporal`, or
 * below `XDG_CACHE_HOME`.
 *
 * @param version of the Temporal CLI, as in `v1.5.1`
 */
export function cachedBinary(
  version: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache');
  return join(cache, 'nightshift', 'temporal', version.slice(1), 'temporal');
}
