import type { Inspection } from '../binaries/find-program';
import { programOutput } from '../binaries/program-output';

/** A `temporal` program with a development server that Nightshift can use. */
export interface ServerBinary {
  readonly path: string;
  /** Version of the server inside, e.g. `1.29.1`; a database file belongs to one version. */
  readonly serverVersion: string;
  /** First line of `temporal --version`. */
  readonly description: string;
  /** Where it was found: `PATH`, `cache`, `download`, `go install`, or the environment variable. */
  readonly source: string;
}

/** The first with task queue fairness (docs/design/temporal.md#fairness-and-priority). */
const OLDEST_SERVER = [1, 29] as const;

/** Runs `path --version`. Never throws. */
export async function inspectBinary(
  path: string,
  source: string,
): Promise<Inspection<ServerBinary>> {
  const output = await programOutput(path, ['--version']).catch((error: Error) => error);
  if (output instanceof Error) return { kind: 'unusable', reason: output.message };
  const description = output.trim().split('\n', 1)[0] ?? '';
  const match = /\(Server (\d+)\.(\d+)\.(\d+)/.exec(description);
  if (match === null) {
    return {
      kind: 'unusable',
      reason: `${path} is not a Temporal CLI (--version prints "${description}")`,
    };
  }
  const [major = 0, minor = 0, patch = 0] = match.slice(1).map(Number);
  if (major < OLDEST_SERVER[0] || (major === OLDEST_SERVER[0] && minor < OLDEST_SERVER[1])) {
    const needed = OLDEST_SERVER.join('.');
    return {
      kind: 'unusable',
      reason: `${path} is too old: ${description}; server ${needed} or newer is needed`,
    };
  }
  const serverVersion = `${major}.${minor}.${patch}`;
  return { kind: 'usable', program: { path, serverVersion, description, source } };
}
