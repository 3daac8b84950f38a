import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { privateFolder } from '../../embedded/locks/private-folder';

/** The result of one check with the Python client. */
export interface Verdict {
  readonly id: string;
  readonly ok: boolean;
  readonly error?: string;
}

const INSTALL_LIMIT_MS = 120_000;
const RUN_LIMIT_MS = 170_000;
const SCRIPT = join(__dirname, 'contract.py');

/**
 * The path of a Python with the official client, in a virtual environment that later runs reuse. Returns
 * null and prints the reason if there is no python3 or no package index.
 */
export function findPython(): string | null {
  const folder = privateFolder('nightshift-python-client');
  const python = join(folder, 'bin', 'python');
  if (hasClient(python)) return python;
  const steps = [
    ['python3', '-m', 'venv', folder],
    [python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'openai[realtime]'],
  ];
  for (const [command = '', ...args] of steps) {
    const done = spawnSync(command, args, { timeout: INSTALL_LIMIT_MS, encoding: 'utf8' });
    if (done.status === 0) continue;
    const reason = done.error?.message ?? done.stderr.trim().split('\n').at(-1) ?? '';
    process.stderr.write(`the Python client is not tested: ${command} failed: ${reason}\n`);
    return null;
  }
  return hasClient(python) ? python : null;
}

function hasClient(python: string): boolean {
  return existsSync(python) && spawnSync(python, ['-c', 'import openai, websockets']).status === 0;
}

/** Runs all checks with the Python client. */
export async function runPythonContract(
  python: string,
  { baseUrl, apiKey }: { readonly baseUrl: string; readonly apiKey: string },
): Promise<Verdict[]> {
  const env = { ...process.env, OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: apiKey };
  const child = spawn(python, [SCRIPT], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_LIMIT_MS);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  if (code !== 0) throw new Error(`the Python client ended with ${String(code)}:\n${output}`);
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Verdict);
}
