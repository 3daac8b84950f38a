import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from './free-port';
import { startSupervised, type SupervisedProcess } from './supervised-process';

/** Settings of a stack, as its processes get them. */
export type StackSettings = Record<string, Record<string, unknown>>;

/** An API or a worker beside the processes of a stack. It is started again whenever it dies. */
export interface ProcessBesideStack extends SupervisedProcess {
  readonly command: 'api' | 'worker';
  /** Base URL of an API. */
  readonly baseUrl: string;
  readonly observabilityPort: number;
}

export interface ProcessBesideStackOptions {
  readonly command: 'api' | 'worker';
  /** Name of its files in the data directory of the stack. */
  readonly name: string;
  /** Data directory of the stack. */
  readonly dataDir: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Changes the settings of the stack for this process. */
  readonly change?: (settings: StackSettings) => void;
}

/** Starts it with the settings that the stack has at each start, on ports of its own. Waits until it is ready. */
export async function startBesideStack(
  options: ProcessBesideStackOptions,
): Promise<ProcessBesideStack> {
  const { command, name, dataDir, env } = options;
  const [port, observabilityPort] = [await freePort(), await freePort()];
  const ports = { observability_port: observabilityPort, ...(command === 'api' ? { port } : {}) };
  const supervised = await startSupervised({
    ...{ command, observabilityPort, logFile: join(dataDir, 'logs', `${name}.log`) },
    writeConfig: () => writeSettings(options, ports),
    ...(env === undefined ? {} : { env }),
  });
  return { ...supervised, command, baseUrl: `http://127.0.0.1:${port}/v1`, observabilityPort };
}

/** Writes the present settings of the stack with these ports; the path of the file. */
function writeSettings(
  { command, name, dataDir, change }: ProcessBesideStackOptions,
  ports: object,
): string {
  const folder = join(dataDir, 'run');
  const settings = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as StackSettings;
  settings[command] = { ...settings[command], ...ports };
  change?.(settings);
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  return file;
}
