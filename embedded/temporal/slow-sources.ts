import { downloadServer } from './download';
import type { FindServerOptions, SlowSourceName } from './find-server-options';
import { buildServer } from './go-build';

/** The version that is downloaded or built if none is found. */
export const CLI_VERSION = 'v1.5.1';
/** The server inside it. */
const CLI_SERVER_VERSION = '1.29.1';
const PROGRESS_INTERVAL_MS = 2_000;

/** A way to get the server that takes minutes. */
export interface SlowSource {
  readonly name: SlowSourceName;
  /** Writes the program into the cache. @throws unavailable, object_missing */
  run(): Promise<void>;
}

/** The slow sources to try, in order; none if a server version is wanted that they do not have. */
export function slowSources(options: FindServerOptions, target: string): SlowSource[] {
  const wanted = options.wantedVersion ?? null;
  if (wanted !== null && wanted !== CLI_SERVER_VERSION) return [];
  const sources: SlowSource[] = [
    { name: 'download', run: () => download(options, target) },
    { name: 'go install', run: () => build(options, target) },
  ];
  const { slowSources: allowed } = options;
  return sources.filter(({ name }) => allowed === undefined || allowed.includes(name));
}

function download(options: FindServerOptions, target: string): Promise<void> {
  const { say, downloadService, signal } = options;
  let saidAtMs = 0;
  return downloadServer({
    version: CLI_VERSION,
    target,
    onProgress: (receivedBytes) => {
      if (performance.now() - saidAtMs < PROGRESS_INTERVAL_MS) return;
      saidAtMs = performance.now();
      say(`downloading the Temporal server: ${Math.round(receivedBytes / 1e6)} MB`);
    },
    ...(downloadService === undefined ? {} : { service: downloadService }),
    ...(signal === undefined ? {} : { signal }),
  });
}

function build({ env, say, signal }: FindServerOptions, target: string): Promise<void> {
  say(`building the Temporal server ${CLI_VERSION} with Go: 4 to 9 minutes, once`);
  return buildServer({
    version: CLI_VERSION,
    target,
    env,
    onProgress: (elapsedMs) =>
      say(`still building the Temporal server: ${Math.round(elapsedMs / 1_000)} s`),
    ...(signal === undefined ? {} : { signal }),
  });
}
