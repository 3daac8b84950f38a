import { spawn } from 'node:child_process';
import { NightshiftError } from '../../core/errors';

/** A `temporal` program with a development server that Nightshift can use. */
export interface ServerBinary {
  readonly path: string;
  /** Version of the server inside, e.g. `1.29.1`; a database file belongs to one version. */
  readonly serverVersion: string;
  /** First line of `temporal --version`. */
  readonly description: string;
  /** Where it was found: `PATH`, `cache`, `download`, `go install`. */
  readonly source: string;
}

/** The first with task queue fairness (docs/design/temporal.md#fairness-and-priority). */
const OLDEST_SERVER = [1, 29] as const;
const VERSION_TIMEOUT_MS = 20_000;

/** Whether a program called `temporal` is usable, or why it is not. */
export type Inspection =
  | { readonly kind: 'usable'; readonly binary: ServerBinary }
  | { readonly kind: 'unusable'; readonly reason: string };

/** Runs `path --version`. Never throws. */
export async function inspectBinary(path: string, source: string): Promise<Inspection> {
  const output = await run(path, ['--version'], VERSION_TIMEOUT_MS).catch((error: Error) => error);
  if (output instanceof Error) return { kind: 'unusable', reason: `${path}: ${output.message}` };
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
  return { kind: 'usable', binary: { path, serverVersion, description, source } };
}

function run(path: string, args: readonly string[], timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'ignore'], timeout: timeoutMs });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(output);
      else
        reject(
          new NightshiftError(
            'internal',
            `--version ended with ${signal ?? `exit status ${code}`}`,
          ),
        );
    });
  });
}
