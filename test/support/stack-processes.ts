import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ProcessBesideStack, startBesideStack } from './process-beside-stack';
import { exists } from './process-state';

/** The processes of a stack: its own parts, and further APIs and workers beside them. */
export interface StackProcesses {
  /** `fetch` for URLs below the stack's `baseUrl`, which uses all APIs in turn. */
  readonly fetch: typeof fetch;
  /** Process id of a running part, from the state file of the stack. Throws while the part is down. */
  pidOf(part: string): number;
  /** The same; null while the part is down. */
  pidNow(part: string): number | null;
  /** Process ids of a part and of the processes of its kind beside it, without those that are down. */
  pidsOf(part: string): number[];
  /** Lines of the metrics pages of all processes of a kind that begin with `prefix`. */
  metric(part: 'api' | 'worker' | 'gateway', prefix: string): Promise<string[]>;
  /** What all processes of a kind have logged, one after the other. */
  logOf(part: string): string;
  /** The same, without what they logged before this call. */
  logFromNow(part: string): () => string;
}

interface OthersOptions {
  readonly dataDir: string;
  /** Base URL of the stack's own API. */
  readonly baseUrl: string;
  /** How many APIs and how many workers, the stack's own among them. */
  readonly count: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the APIs and workers beside those of a stack that runs. `stopOthers` stops them. */
export async function startOthers({
  dataDir,
  baseUrl,
  count,
  env,
}: OthersOptions): Promise<StackProcesses & { stopOthers(): Promise<unknown> }> {
  const numbers = Array.from({ length: count - 1 }, (_, i) => i + 2);
  const others = await Promise.all(
    numbers.flatMap((number) =>
      (['api', 'worker'] as const).map((command) =>
        startBesideStack({ command, name: `${command}-${number}`, dataDir, env }),
      ),
    ),
  );
  const othersOf = (part: string) => others.filter(({ command }) => command === part);
  return {
    fetch: fetchInTurn([baseUrl, ...othersOf('api').map((api) => api.baseUrl)]),
    pidOf: (part) => pidOf(dataDir, part),
    pidNow: (part) => exists(() => pidOf(dataDir, part)),
    pidsOf: (part) => {
      const own = exists(() => pidOf(dataDir, part));
      return [own, ...othersOf(part).map((other) => other.pid())].filter((pid) => pid !== null);
    },
    ...pagesAndLogs(dataDir, othersOf),
    stopOthers: () => Promise.all(others.map((other) => other.stop())),
  };
}

function pagesAndLogs(
  dataDir: string,
  othersOf: (part: string) => ProcessBesideStack[],
): Pick<StackProcesses, 'metric' | 'logOf' | 'logFromNow'> {
  const logsOf = (part: string): string[] => [
    readFileSync(join(dataDir, 'logs', `${part}.log`), 'utf8'),
    ...othersOf(part).map((other) => other.log()),
  ];
  return {
    metric: async (part, prefix) => {
      const own = observabilityPort(dataDir, part);
      const ports = [own, ...othersOf(part).map((other) => other.observabilityPort)];
      return (await Promise.all(ports.map((port) => readMetric(port, prefix)))).flat();
    },
    logOf: (part) => logsOf(part).join(''),
    logFromNow: (part) => {
      const before = logsOf(part).map(({ length }) => length);
      const news = () => logsOf(part).map((text, i) => text.slice(before[i]));
      return () => news().join('');
    },
  };
}

/** `fetch` that replaces the first base URL by each of them in turn. */
function fetchInTurn(baseUrls: readonly string[]): typeof fetch {
  const [first = ''] = baseUrls;
  let calls = 0;
  return (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const target = url.replace(first, baseUrls[calls++ % baseUrls.length] ?? '');
    return fetch(input instanceof Request ? new Request(target, input) : target, init);
  };
}

/** The file with the settings of the stack that runs in this data directory. */
export function runningConfig(dataDir: string): string {
  return join(dataDir, 'run', 'config.json');
}

function pidOf(dataDir: string, part: string): number {
  const file = join(dataDir, 'run', 'processes.json');
  const parts = JSON.parse(readFileSync(file, 'utf8')) as { name: string; pid: number }[];
  const pid = parts.find(({ name }) => name === part)?.pid;
  if (pid === undefined) throw new Error(`no part ${part} among ${JSON.stringify(parts)}`);
  return pid;
}

function observabilityPort(dataDir: string, part: 'api' | 'worker' | 'gateway'): number {
  const settings = JSON.parse(readFileSync(runningConfig(dataDir), 'utf8')) as Record<
    typeof part,
    { observability_port: number }
  >;
  return settings[part].observability_port;
}

async function readMetric(port: number, prefix: string): Promise<string[]> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith(prefix));
}
