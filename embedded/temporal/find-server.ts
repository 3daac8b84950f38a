import { NightshiftError } from '../../core/errors';
import { findProgram, programVariable, type Inspection } from '../binaries/find-program';
import type { FindServerOptions } from './find-server-options';
import { inspectBinary, type ServerBinary } from './server-binary';
import { slowSources, TEMPORAL_CLI } from './slow-sources';

/**
 * Finds the program of Temporal's development server. It tries the cheapest source first: the PATH, the
 * user's cache, a download (about 100 MB), and `go install` (4 to 9 minutes, but it needs only a Go module
 * proxy).
 *
 * The order is fixed and the PATH comes first, so an operator can choose the server by installing a CLI. A
 * program that does not run or is too old is skipped with a note. If the data directory was created by
 * another server version, only that version is used: another one may fail to open the database, or change
 * it (docs/design/embedded-stack.md#temporal-server-lookup).
 *
 * @throws temporal_unavailable with everything that was tried and what to do
 */
export async function findServer(options: FindServerOptions): Promise<ServerBinary> {
  const { env, say, signal, wantedVersion = null } = options;
  const { program, tried } = await findProgram({
    program: TEMPORAL_CLI,
    title: 'Temporal server',
    env,
    slowSources: slowSources(options),
    signal,
    inspect: (path, source) => inspectWanted(path, source, wantedVersion),
    say,
  });
  if (program !== null) return program;
  throw nothingFound(tried, wantedVersion);
}

async function inspectWanted(
  path: string,
  source: string,
  wanted: string | null,
): Promise<Inspection<ServerBinary>> {
  const inspected = await inspectBinary(path, source);
  if (inspected.kind === 'unusable' || wanted === null) return inspected;
  const { serverVersion } = inspected.program;
  if (serverVersion === wanted) return inspected;
  return { kind: 'unusable', reason: `${path} is server ${serverVersion}, not ${wanted}` };
}

function nothingFound(tried: readonly string[], wanted: string | null): NightshiftError {
  const list = ['PATH and cache: looked for `temporal`', ...tried].map((line) => `  ${line}`);
  const what =
    wanted === null
      ? 'Found no Temporal server.'
      : `This data directory was created by Temporal server ${wanted}, which was not found.`;
  const advice = [
    'What to do: install the Temporal CLI (https://docs.temporal.io/cli) so that `temporal` is on the PATH,',
    `or set ${programVariable(TEMPORAL_CLI.name)} to its file,`,
    'or install Go 1.21 or newer and start again, or set temporal.address (TEMPORAL_ADDRESS) to a running server',
    ...(wanted === null ? [] : ['or choose a new --data-dir']),
  ];
  const text = [what, 'Tried:', ...list, advice.join(' ')].join('\n');
  return new NightshiftError('temporal_unavailable', `${text}.`);
}
