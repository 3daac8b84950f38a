import { join } from 'node:path';
import { packageRoot } from '../platform/package-root';
import type { ComponentSpec } from './supervision/component';

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

/**
 * A worker makes much short-lived garbage in two JavaScript heaps and a dozen threads. Measured idle:
 * 231 MB as it comes, 190 MB with these two. A smaller space than this lets what is in flight grow old.
 * An API has 103 MB in place of 122 MB, idle.
 */
const SMALL_NODE_FLAGS = ['--max-semi-space-size=8'];
const SMALL_MALLOC = { MALLOC_ARENA_MAX: '1' };

export interface NodeComponentOptions {
  /** A command of our own executable. */
  readonly name: 'api' | 'worker' | 'simulator';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Address that answers when the part is ready. */
  readonly probeUrl: string;
  /** `pid`: a 2xx whose JSON names the part's own pid is asked for; `any`: any answer will do. */
  readonly probe: 'pid' | 'any';
  readonly stopTimeoutMs: number;
}

/** One of our own processes, started by the same Node from the same build. */
export function nodeComponent(options: NodeComponentOptions): ComponentSpec {
  const { name, args, env, probeUrl, probe, stopTimeoutMs } = options;
  const isSmall = name !== 'simulator';
  return {
    name,
    command: process.execPath,
    args: [...(isSmall ? SMALL_NODE_FLAGS : []), executable(), name, ...args],
    env: isSmall ? { ...SMALL_MALLOC, ...env } : env,
    isReady: (pid) => answers(probeUrl, probe === 'pid' ? pid : null),
    readyTimeoutMs: READY_TIMEOUT_MS,
    stopSignal: 'SIGTERM',
    stopTimeoutMs,
    killSignal: 'SIGKILL',
  };
}

/** Our program as built; its checks of packages and build have been made by whoever starts it. */
export function executable(): string {
  return join(packageRoot(), 'dist', 'cli', 'main.js');
}

/** Where another program has the port, that one answers: its pid tells. */
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
