import { existsSync, readFileSync } from 'node:fs';
import type { Disturbance } from '../checker/evidence';
import type { FaultsModelServer } from './model-server';
import type { FaultKind, FaultPlan, Part } from './plan';
import type { SecondWorker } from './second-worker';
import type { TestStack } from '../../support/stack';
import type { ProxyMood, TcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';

/** The parts that faults strike on. */
export interface FaultsParts {
  /** Does it, and resolves when its moment is over. */
  strike(fault: Pick<FaultPlan, 'kind' | 'part' | 'forMs'>): Promise<Disturbance>;
  /** Resolves when no part has died so often lately that another death would end the stack. */
  calm(): Promise<void>;
}

export interface FaultsScene {
  readonly stack: TestStack;
  /** Starts the stack anew on its data directory; `stack` is the new one then. */
  restart(): Promise<void>;
  readonly modelServer: FaultsModelServer;
  readonly secondWorker: SecondWorker | null;
}

/** The stack gives a part up that dies five times within 30 s before it was ready. */
const DEATHS_WITHIN_MS = 31_000;
const HARMLESS_DEATHS = 3;
/** In the order in which they are told to stop, one after the other. */
const ROLLING = ['worker', 'api', 'temporal', 'postgres'] as const;
const RETURN_MS = 60_000;
const DRAIN_MS = 60_000;

export function faultsParts(scene: FaultsScene): FaultsParts {
  const deaths = new Map<Part, number[]>();
  const broken = new Map<TcpProxy, number>();
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
      if (part === 'stack' || part === 'supervisor') return killStack(part);
      const pid = await livingPid(part);
      noteDeath(part);
      process.kill(pid, 'SIGKILL');
      await awaitNew(part, pid);
    },
    drain: async (part) => {
      if (part === 'stack') {
        await scene.stack.stop();
        return scene.restart();
      }
      const pid = await livingPid(part);
      noteDeath(part);
      process.kill(pid, 'SIGTERM');
      await until(() => !isAlive(pid), DRAIN_MS, `the end of ${part} after SIGTERM`, 10);
    },
    roll: async () => {
      for (const part of ROLLING) {
        const pid = await livingPid(part);
        noteDeath(part);
        // SIGTERM makes Postgres wait for its clients to leave.
        process.kill(pid, part === 'postgres' ? 'SIGINT' : 'SIGTERM');
        await until(() => !isAlive(pid), DRAIN_MS, `the end of ${part} in its turn`, 10);
        await awaitNew(part, pid);
      }
    },
    freeze: async (part, forMs) => {
      const pid = await livingPid(part);
      process.kill(pid, 'SIGSTOP');
      await new Promise((resolve) => setTimeout(resolve, forMs));
      // It may have been killed meanwhile.
      if (isAlive(pid)) process.kill(pid, 'SIGCONT');
    },
    cut: (part, forMs) =>
      part === 'model-server' ? scene.modelServer.cut(forMs) : breakLinks(part, 'refuse', forMs),
    hang: (part, forMs) => breakLinks(part, 'hang', forMs),
  };

  async function killStack(part: 'stack' | 'supervisor'): Promise<void> {
    const { stack } = scene;
    const parts = part === 'supervisor' ? [] : ROLLING.map((name) => pidOf(name));
    for (const pid of [stack.pid, ...parts]) if (pid !== null) process.kill(pid, 'SIGKILL');
    await stack.ended;
    await scene.restart();
  }

  /** Several breaks of one link may overlap: the last to end mends it. */
  async function breakLinks(part: Part, mood: ProxyMood, forMs: number): Promise<void> {
    const links = linksOf(scene.secondWorker, part);
    for (const link of links) {
      broken.set(link, (broken.get(link) ?? 0) + 1);
      await link.become(mood);
    }
    await new Promise((resolve) => setTimeout(resolve, forMs));
    for (const link of links) {
      const left = (broken.get(link) ?? 1) - 1;
      broken.set(link, left);
      if (left === 0) await link.become('pass');
    }
  }

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

function linksOf(worker: SecondWorker | null, part: Part): TcpProxy[] {
  if (worker === null) return [];
  const { temporal, postgres, models } = worker.links;
  if (part === 'to-temporal') return [temporal];
  if (part === 'to-postgres') return [postgres];
  return part === 'to-models' ? [models] : [temporal, postgres, models];
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
