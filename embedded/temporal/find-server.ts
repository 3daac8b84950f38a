import { existsSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { NightshiftError } from '../../core/errors';
import { downloadServer } from './download';
import { buildServer } from './go-build';
import { inspectBinary, type ServerBinary } from './server-binary';

/** The version that is downloaded or built where none is found. */
const CLI_VERSION = 'v1.5.1';
/** The server inside it. */
const CLI_SERVER_VERSION = '1.29.1';

export interface FindServerOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Server version that a data directory was made by: another one is passed over. */
  readonly wantedVersion?: string | null;
  /** Ends a download or a build. */
  readonly signal?: AbortSignal;
  /** Hears what takes time: a download, a build. */
  say(message: string): void;
  /** For tests: another download service, or none of the two slow ways. */
  readonly downloadService?: string;
  readonly slowWays?: readonly SlowWay['name'][];
}

/**
 * Finds the Temporal dev server's program (design §6): on the PATH, in the user's cache, by the SDK's
 * download, by `go install`. What is fetched or built is kept in the cache.
 *
 * @throws temporal_unavailable with everything that was tried and what to do
 */
export async function findServer(options: FindServerOptions): Promise<ServerBinary> {
  const tried: string[] = [];
  for (const { path, source } of candidates(options.env)) {
    const binary = await usable(path, source, options, tried);
    if (binary !== null) return binary;
  }
  const cached = cachedBinary(options.env);
  for (const way of slowWays(options, cached)) {
    const binary = await tryWay(way, cached, options, tried);
    if (binary !== null) return binary;
  }
  throw nothingFound(tried, options);
}

/** `~/.cache/nightshift/temporal/<version>/temporal`; XDG_CACHE_HOME is honoured. */
export function cachedBinary(env: FindServerOptions['env']): string {
  const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache');
  return join(cache, 'nightshift', 'temporal', CLI_VERSION.slice(1), 'temporal');
}

function candidates(env: FindServerOptions['env']): { path: string; source: string }[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [
    ...folders.map((folder) => ({ path: join(folder, 'temporal'), source: 'PATH' })),
    { path: cachedBinary(env), source: 'cache' },
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

interface SlowWay {
  readonly name: 'download' | 'go install';
  run(): Promise<void>;
}

function slowWays(options: FindServerOptions, target: string): SlowWay[] {
  const { env, say, downloadService, slowWays: allowed } = options;
  const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
  let saidAtMs = 0;
  const onProgress = (receivedBytes: number): void => {
    if (performance.now() - saidAtMs < 2_000) return;
    saidAtMs = performance.now();
    say(`downloading the Temporal server: ${megabytes(receivedBytes)}`);
  };
  const service = downloadService === undefined ? {} : { service: downloadService };
  const abort = options.signal === undefined ? {} : { signal: options.signal };
  const ways: SlowWay[] = [
    {
      name: 'download',
      run: () => downloadServer({ version: CLI_VERSION, target, onProgress, ...service, ...abort }),
    },
    {
      name: 'go install',
      run: () => {
        say(`building the Temporal server with Go ${CLI_VERSION}: 4 to 9 minutes, once`);
        return buildServer({
          version: CLI_VERSION,
          target,
          env,
          onProgress: sayElapsed(say),
          ...abort,
        });
      },
    },
  ];
  const wanted = options.wantedVersion ?? null;
  if (wanted !== null && wanted !== CLI_SERVER_VERSION) return [];
  return ways.filter(({ name }) => allowed === undefined || allowed.includes(name));
}

function sayElapsed(say: FindServerOptions['say']): (elapsedMs: number) => void {
  return (elapsedMs) =>
    say(`still building the Temporal server: ${Math.round(elapsedMs / 1_000)} s`);
}

async function tryWay(
  way: SlowWay,
  cached: string,
  options: FindServerOptions,
  tried: string[],
): Promise<ServerBinary | null> {
  options.say(`no Temporal server on the PATH or in the cache: trying ${way.name}`);
  try {
    // Nobody else may put a program there that we would run.
    mkdirSync(join(cached, '..'), { recursive: true, mode: 0o700 });
    await way.run();
  } catch (error) {
    options.signal?.throwIfAborted();
    tried.push(`${way.name}: ${(error as Error).message}`);
    options.say(`${way.name} failed: ${(error as Error).message}`);
    return null;
  }
  return usable(cached, way.name, options, tried);
}

function nothingFound(tried: readonly string[], options: FindServerOptions): NightshiftError {
  const wanted = options.wantedVersion ?? null;
  const list = ['PATH and cache: looked for `temporal`', ...tried].map((line) => `  ${line}`);
  const what =
    wanted === null
      ? 'No Temporal server was found.'
      : `This data directory was made by Temporal server ${wanted}, and that one was not found.`;
  const advice = [
    'What to do: install the Temporal CLI (https://docs.temporal.io/cli) so that `temporal` is on the PATH,',
    'or install Go 1.21 or newer and start again, or set temporal.address (TEMPORAL_ADDRESS) to a running server',
    ...(wanted === null ? [] : ['or choose a new --data-dir']),
  ];
  const text = [what, 'Tried:', ...list, advice.join(' ')].join('\n');
  return new NightshiftError('temporal_unavailable', `${text}.`);
}
