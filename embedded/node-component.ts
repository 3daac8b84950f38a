import { join } from 'node:path';
import { packageRoot } from '../platform/package-root';
import type { ComponentSpec } from './supervision/component';

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

/**
 * A worker produces much short-lived garbage in two JavaScript heaps and a dozen threads. A small young
 * generation and a single malloc arena reduce its idle memory from 231 MB to 190 MB, and that of an API
 * from 122 MB to 103 MB. A young generation below 8 MB would promote buffers of requests in flight to the
 * old generation. With 500 requests in flight, 16 MB save a worker 10 to 25 % of its processor time for 25 MB more at
 * its peak; 32 MB save little more.
 */
const SMALL_YOUNG_MB = 8;
const WORKER_YOUNG_MB = 16;
/**
 * V8 starts four threads for collections on every machine. On two cores they wait for each other and for the main
 * thread: with one, a worker sends 3 to 5 % more.
 */
const WORKER_V8_THREADS = 1;
/**
 * How long a worker rests before V8 makes its heap small, ms; by default 8 s. V8 collects everything twice for that, and
 * drops hidden classes that no object has at the time, and optimized code with them. After 40 s of rest, a batch of
 * 20,000 lines then costs 110 to 127 µs for each line, and 91 to 98 otherwise. Until then a worker keeps some 50 MB more.
 */
const RESTS_MS = 600_000;
const WORKER_FLAGS = [
  `--v8-pool-size=${WORKER_V8_THREADS}`,
  `--gc-memory-reducer-start-delay-ms=${RESTS_MS}`,
];
const SMALL_MALLOC = { MALLOC_ARENA_MAX: '1' };

/** One of our own processes, and how to tell that it is ready. */
export interface NodeComponentOptions {
  /** A command of our executable. */
  readonly name: 'api' | 'worker' | 'gateway' | 'simulator';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Address that answers when the process is ready. */
  readonly probeUrl: string;
  /**
   * `pid` accepts only a 2xx answer with the process's own pid in its JSON, because another program may
   * listen on the port; `any` accepts every answer.
   */
  readonly probe: 'pid' | 'any';
  readonly stopTimeoutMs: number;
}

/** A component that runs with the same Node and from the same build as its supervisor. */
export function nodeComponent(options: NodeComponentOptions): ComponentSpec {
  const { name, args, env, probeUrl, probe, stopTimeoutMs } = options;
  const isSmall = name !== 'simulator';
  const isWorker = name === 'worker';
  const flags = [
    ...(isSmall ? [`--max-semi-space-size=${isWorker ? WORKER_YOUNG_MB : SMALL_YOUNG_MB}`] : []),
    ...(isWorker ? WORKER_FLAGS : []),
  ];
  return {
    name,
    command: process.execPath,
    args: [...flags, executable(), name, ...args],
    env: isSmall ? { ...SMALL_MALLOC, ...env } : env,
    isReady: (pid) => answers(probeUrl, probe === 'pid' ? pid : null),
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopSignal: 'SIGTERM',
    stopTimeoutMs,
    killSignal: 'SIGKILL',
  };
}

/** The built program. Its packages and build were checked when the supervisor started. */
export function executable(): string {
  return join(packageRoot(), 'dist', 'cli', 'main.js');
}

async function answers(url: string, pid: number | null): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const text = await response.text();
    if (pid === null) return true;
    return response.ok && (JSON.parse(text) as { pid?: unknown }).pid === pid;
  } catch {
    return false;
  }
}
