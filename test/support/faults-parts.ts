import { existsSync, readFileSync } from 'node:fs';
import type { Disturbance } from './checker-evidence';
import type { FaultsModelServer } from './faults-model-server';
import type { FaultKind, FaultPlan, Part } from './faults-plan';
import type { SecondWorker } from './faults-second-worker';
import type { TestStack } from './stack';
import { until } from './until';

/** The parts that faults strike on. */
export interface FaultsParts {
  /** Does it, and resolves when its moment is over. */
  strike(fault: Pick<FaultPlan, 'kind' | 'part' | 'forMs'>): Promise<Disturbance>;
  /** Resolves when no part has died so often lately that another death would end the stack. */
  calm(): Promise<void>;
}

export interface FaultsScene {
  readonly stack: TestStack;
  readonly modelServer: FaultsModelServer;
  readonly secondWorker: SecondWorker | null;
}

/** The stack gives a part up that dies five times within 30 s. */
const DEATHS_WITHIN_MS = 31_000;
const HARMLESS_DEATHS = 1;
const RETURN_MS = 60_000;
const DRAIN_MS = 60_000;

export function faultsParts(scene: FaultsScene): FaultsParts {
  const deaths = new Map<Part, number[]>();
  const pidOf = (part: Part): number | null =>
    part === 'second-worker' ? (scene.secondWorker?.pid() ?? null) : stackPid(scene.stack, part);

  const recent = (part: Part): number =>
    (deaths.get(part) ?? []).filter((atMs) => Date.now() - atMs < DEATHS_WITHIN_MS).length;

  async function awaitNew(part: Part, oldPid: number): Promise<void> {
    const isNew = (): boolean => ![null, oldPid].includes(pidOf(part));
    await until(isNew, RETURN_MS, `a new ${part}`);
  }

  const acts: Record<FaultKind, (part: Part, forMs: number) => Promise<void>> = {
    kill: async (part) => {
      const pid = await livingPid(part);
      noteDeath(part);
      process.kill(pid, 'SIGKILL');
      await awaitNew(part, pid);
    },
    drain: async (part) => {
      const pid = await livingPid(part);
      noteDeath(part);
      process.kill(pid, 'SIGTERM');
      await until(() => !isAlive(pid), DRAIN_MS, `the end of ${part} after SIGTERM`, 10);
    },
    freeze: async (part, forMs) => {
      const pid = await livingPid(part);
      process.kill(pid, 'SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, forMs));
      // It may have been killed meanwhile.
      if (isAlive(pid)) process.kill(pid, 'SIGCONT');
    },
    cut: (_, forMs) => scene.modelServer.cut(forMs),
  };

  async function livingPid(part: Part): Promise<number> {
    return until(() => pidOf(part), RETURN_MS, `a living ${part}`);
  }

  function noteDeath(part: Part): void {
    deaths.set(part, [...(deaths.get(part) ?? []), Date.now()]);
  }

  return {
    strike: async ({ kind, part, forMs }) => {
      const fromMs = Date.now();
      await acts[kind](part, forMs);
      return { kind, part, fromMs, toMs: Date.now() };
    },
    calm: async () => {
      const isCalm = (): boolean =>
        [...deaths.keys()].every((part) => recent(part) <= HARMLESS_DEATHS);
      await until(isCalm, DEATHS_WITHIN_MS + 5_000, 'calm', 200);
    },
  };
}

function stackPid(stack: TestStack, part: Part): number | null {
  try {
    const pid = stack.pidOf(part);
    return isAlive(pid) ? pid : null;
  } catch {
    return null;
  }
}

/** A zombie counts as dead. */
function isAlive(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  if (existsSync('/proc/self/stat')) {
    try {
      return !/\) [ZX] /.test(readFileSync(file, 'utf8'));
    } catch {
      return false;
    }
  }
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
