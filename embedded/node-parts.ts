import { join } from 'node:path';
import { packageRoot } from '../platform/package-root';
import type { PartSpec } from './part';

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

export interface NodePartOptions {
  /** A command of our own executable. */
  readonly name: 'api' | 'worker' | 'simulator';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Address that answers when the part is ready. */
  readonly probeUrl: string;
  /** `ok`: a 2xx is asked for; `any`: whoever answers at all is ready. */
  readonly probe: 'ok' | 'any';
  readonly stopTimeoutMs: number;
}

/** One of our own processes, started by the same Node from the same build. */
export function nodePart(options: NodePartOptions): PartSpec {
  const { name, args, env, probeUrl, probe, stopTimeoutMs } = options;
  return {
    name,
    command: process.execPath,
    args: [executable(), name, ...args],
    env,
    isReady: () => answers(probeUrl, probe),
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

async function answers(url: string, probe: NodePartOptions['probe']): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return probe === 'any' || response.ok;
  } catch {
    return false;
  }
}
