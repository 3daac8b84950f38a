import { existsSync, mkdirSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { cachedBinary } from './binary-cache';
import type { FindServerOptions } from './find-server-options';
import { inspectBinary, type ServerBinary } from './server-binary';
import { CLI_VERSION, slowSources, type SlowSource } from './slow-sources';

/**
 * Finds the program of Temporal's development server. It tries the cheapest source first: the PATH, the
 * user's cache, a download (about 100 MB), and `go install` (4 to 9 minutes, but it needs only a Go module
 * proxy). A downloaded or built program is kept in the cache, so each machine pays once.
 *
 * The order is fixed and the PATH comes first, so an operator can choose the server by installing a CLI. A
 * program that does not run or is too old is skipped with a note. If the data directory was created by
 * another server version, only that version is used: another one may fail to open the database, or change
 * it (docs/design/embedded-stack.md#temporal-server-lookup).
 *
 * @throws temporal_unavailable with everything that was tried and what to do
 */
export async function findServer(options: FindServerOptions): Promise<ServerBinary> {
  const tried: string[] = [];
  for (const { path, source } of candidates(options.env)) {
    const binary = await usable(path, source, options, tried);
    if (binary !== null) return binary;
  }
  const cached = cachedBinary(CLI_VERSION, options.env);
  for (const slow of slowSources(options, cached)) {
    const binary = await trySource(slow, cached, options, tried);
    if (binary !== null) return binary;
  }
  throw nothingFound(tried, options);
}

function candidates(env: FindServerOptions['env']): { path: string; source: string }[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [
    ...folders.map((folder) => ({ path: join(folder, 'temporal'), source: 'PATH' })),
    { path: cachedBinary(CLI_VERSION, env), source: 'cache' },
  ].filter(({ path }) => existsSync(path) && statSync(path).isFile());
}

async function usable(
  path: string,
  source: string,
  options: FindServerOptions,
  tried: string[],
): Promise<ServerBinary | null> {
  const inspected = await inspectBinary(path, source);
  if (inspected.kind === 'unusable') {
    tried.push(`${source}: ${inspected.reason}`);
    return null;
  }
  const { binary } = inspected;
  const wanted = options.wantedVersion ?? null;
  if (wanted === null || binary.serverVersion === wanted) return binary;
  tried.push(`${source}: ${path} is server ${binary.serverVersion}, not ${wanted}`);
  return null;
}

async function trySource(
  slow: SlowSource,
  cached: string,
  options: FindServerOptions,
  tried: string[],
): Promise<ServerBinary | null> {
  options.say(`no Temporal server on the PATH or in the cache: trying ${slow.name}`);
  try {
    // Private: no other user may put a program there that we would run.
    mkdirSync(join(cached, '..'), { recursive: true, mode: 0o700 });
    await slow.run();
  } catch (error) {
    options.signal?.throwIfAborted();
    tried.push(`${slow.name}: ${(error as Error).message}`);
    options.say(`${slow.name} failed: ${(error as Error).message}`);
    return null;
  }
  return usable(cached, slow.name, options, tried);
}

function nothingFound(tried: readonly string[], options: FindServerOptions): NightshiftError {
  const wanted = options.wantedVersion ?? null;
  const list = ['PATH and cache: looked for `temporal`', ...tried].map((line) => `  ${line}`);
  const what =
    wanted === null
      ? 'Found no Temporal server.'
      : `This data directory was created by Temporal server ${wanted}, which was not found.`;
  const advice = [
    'What to do: install the Temporal CLI (https://docs.temporal.io/cli) so that `temporal` is on the PATH,',
    'or install Go 1.21 or newer and start again, or set temporal.address (TEMPORAL_ADDRESS) to a running server',
    ...(wanted === null ? [] : ['or choose a new --data-dir']),
  ];
  const text = [what, 'Tried:', ...list, advice.join(' ')].join('\n');
  return new NightshiftError('temporal_unavailable', `${text}.`);
}
