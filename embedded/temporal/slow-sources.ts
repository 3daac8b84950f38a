import type { SlowSource } from '../binaries/find-program';
import { buildGoProgram } from '../binaries/go-build';
import { downloadServer } from './download';
import type { FindServerOptions, SlowSourceName } from './find-server-options';

/** The program that is downloaded or built if none is found. */
export const TEMPORAL_CLI = {
  name: 'temporal',
  package: 'github.com/temporalio/cli/cmd/temporal',
  // `go install` refuses later versions: they have `replace` directives.
  version: 'v1.5.1',
} as const;
/** The server inside it. */
const CLI_SERVER_VERSION = '1.29.1';
const PROGRESS_INTERVAL_MS = 2_000;

/** The slow sources to try, in order; none if a server version is wanted that they do not have. */
export function slowSources(options: FindServerOptions): SlowSource[] {
  const wanted = options.wantedVersion ?? null;
  if (wanted !== null && wanted !== CLI_SERVER_VERSION) return [];
  const sources: (SlowSource & { readonly name: SlowSourceName })[] = [
    { name: 'download', run: (target) => download(options, target) },
    { name: 'go install', run: (target) => build(options, target) },
  ];
  const { slowSources: allowed } = options;
  return sources.filter(({ name }) => allowed === undefined || allowed.includes(name));
}

function download(options: FindServerOptions, target: string): Promise<void> {
  const { say, downloadService, downloadSha256, signal } = options;
  let saidAtMs = 0;
  return downloadServer({
    version: TEMPORAL_CLI.version,
    target,
    onProgress: (receivedBytes) => {
      if (performance.now() - saidAtMs < PROGRESS_INTERVAL_MS) return;
      saidAtMs = performance.now();
      say(`downloading the Temporal server: ${Math.round(receivedBytes / 1e6)} MB`);
    },
    ...(downloadService === undefined ? {} : { service: downloadService }),
    ...(downloadSha256 === undefined ? {} : { sha256: downloadSha256 }),
    ...(signal === undefined ? {} : { signal }),
  });
}

function build({ env, say, signal }: FindServerOptions, target: string): Promise<void> {
  say(`building the Temporal server ${TEMPORAL_CLI.version} with Go: 4 to 9 minutes, once`);
  return buildGoProgram({
    module: TEMPORAL_CLI,
    target,
    env,
    signal,
    onProgress: (elapsedMs) =>
      say(`still building the Temporal server: ${Math.round(elapsedMs / 1_000)} s`),
  });
}
