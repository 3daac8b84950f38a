import { setTimeout as delay } from 'node:timers/promises';
import type { GatewayProcess } from '../../support/gateway-process';
import { isGone } from '../../support/process-state';
import type { TestStack } from '../../support/stack';
import type { ProxyMood, TcpProxy } from '../../support/tcp-proxy';
import { until } from '../../support/until';
import type { Disturbance } from '../checker/evidence';
import type { FaultsModelServer } from './model-server';
import type { FaultKind, FaultPlan, Part } from './plan';
import type { SecondWorker } from './second-worker';

/** What faults strike: processes, links and the model server. */
export interface FaultsParts {
  /** Plays a fault and resolves when it is over. */
  strike(fault: Pick<FaultPlan, 'kind' | 'part' | 'forMs'>): Promise<Disturbance>;
  /** Resolves when no part has died so often lately that another death would end the stack. */
  calm(): Promise<void>;
}

export interface FaultsScene {
  readonly stack: TestStack;
  /** Starts the stack again on its data directory and replaces `stack`. */
  restart(): Promise<void>;
  readonly modelServer: Pick<FaultsModelServer, 'cut'>;
  readonly secondWorker: SecondWorker | null;
  readonly gateway: Pick<GatewayProcess, 'pid'> | null;
}

/** The stack gives up a part that dies five times within 30 s before it was ready. */
const DEATHS_WITHIN_MS = 31_000;
const HARMLESS_DEATHS = 3;
/** The order of a rolling restart. */
const ROLLING = ['worker', 'api', 's3', 'temporal', 'postgres'] as const;
const RETURN_MS = 60_000;
const DRAIN_MS = 60_000;

/** The parts of a running stack and of the second worker, if there is one. */
export function faultsParts(scene: FaultsScene): FaultsParts {
  const processes = new Processes(scene);
  const links = new Links(scene.secondWorker);
  const acts: Record<FaultKind, (part: Part, forMs: number) => Promise<void>> = {
    kill: (part) => processes.kill(part),
    drain: (part) => processes.drain(part),
    roll: () => processes.roll(),
    freeze: (part, forMs) => processes.freeze(part, forMs),
    cut: (part, forMs) =>
      part === 'model-server'
        ? scene.modelServer.cut(forMs)
        : links.break(part, { mood: 'refuse', forMs }),
    hang: (part, forMs) => links.break(part, { mood: 'hang', forMs }),
  };
  return {
    strike: async ({ kind, part, forMs }) => {
      const fromMs = Date.now();
      await acts[kind](part, forMs);
      return { kind, part, fromMs, toMs: Date.now() };
    },
    calm: () =>
      until(() => processes.areCalm(), DEATHS_WITHIN_MS + 5_000, 'calm', 200).then(() => undefined),
  };
}

/** The processes of the stack, and the second worker. */
class Processes {
  readonly #scene: FaultsScene;
  readonly #deaths = new Map<Part, number[]>();

  constructor(scene: FaultsScene) {
    this.#scene = scene;
  }

  async kill(part: Part): Promise<void> {
    if (part === 'stack' || part === 'supervisor') return this.#killStack(part);
    const pid = await this.#end(part, 'SIGKILL');
    await this.#untilNew(part, pid);
  }

  async drain(part: Part): Promise<void> {
    if (part === 'stack') {
      await this.#scene.stack.stop();
      return this.#scene.restart();
    }
    const pid = await this.#end(part, 'SIGTERM');
    await until(() => isGone(pid), DRAIN_MS, `the end of ${part} after SIGTERM`, 10);
  }

  async roll(): Promise<void> {
    for (const part of ROLLING.filter((name) => name !== 's3' || this.#pidOf('s3') !== null)) {
      // After SIGTERM PostgreSQL would wait until its clients disconnect.
      const pid = await this.#end(part, part === 'postgres' ? 'SIGINT' : 'SIGTERM');
      await until(() => isGone(pid), DRAIN_MS, `the end of ${part} in its turn`, 10);
      await this.#untilNew(part, pid);
    }
  }

  async freeze(part: Part, forMs: number): Promise<void> {
    const pid = await this.#livingPid(part);
    process.kill(pid, 'SIGSTOP');
    await delay(forMs);
    // Another fault may have killed it meanwhile.
    if (!isGone(pid)) process.kill(pid, 'SIGCONT');
  }

  areCalm(): boolean {
    const recent = (times: readonly number[]): number =>
      times.filter((atMs) => Date.now() - atMs < DEATHS_WITHIN_MS).length;
    return [...this.#deaths.values()].every((times) => recent(times) <= HARMLESS_DEATHS);
  }

  async #killStack(part: 'stack' | 'supervisor'): Promise<void> {
    const { stack } = this.#scene;
    const parts = part === 'supervisor' ? [] : ROLLING.map((name) => this.#pidOf(name));
    for (const pid of [stack.pid, ...parts]) if (pid !== null) process.kill(pid, 'SIGKILL');
    await stack.ended;
    await this.#scene.restart();
  }

  /** Signals the running process of a part; its process id. */
  async #end(part: Part, signal: NodeJS.Signals): Promise<number> {
    const pid = await this.#livingPid(part);
    this.#deaths.set(part, [...(this.#deaths.get(part) ?? []), Date.now()]);
    process.kill(pid, signal);
    return pid;
  }

  async #untilNew(part: Part, oldPid: number): Promise<void> {
    const isNew = (): boolean => ![null, oldPid].includes(this.#pidOf(part));
    await until(isNew, RETURN_MS, `a new ${part}`);
  }

  #livingPid(part: Part): Promise<number> {
    return until(() => this.#pidOf(part), RETURN_MS, `a living ${part}`);
  }

  #pidOf(part: Part): number | null {
    if (part === 'second-worker') return this.#scene.secondWorker?.pid() ?? null;
    if (part === 'gateway') return this.#scene.gateway?.pid() ?? null;
    const pid = this.#scene.stack.pidNow(part);
    return pid === null || isGone(pid) ? null : pid;
  }
}

/** The links of the second worker. */
class Links {
  readonly #worker: SecondWorker | null;
  /** How many breaks of a link last. Breaks may overlap: the last one to end mends the link. */
  readonly #breaks = new Map<TcpProxy, number>();

  constructor(worker: SecondWorker | null) {
    this.#worker = worker;
  }

  async break(part: Part, { mood, forMs }: { mood: ProxyMood; forMs: number }): Promise<void> {
    const links = this.#linksOf(part);
    for (const link of links) {
      this.#breaks.set(link, (this.#breaks.get(link) ?? 0) + 1);
      await link.become(mood);
    }
    await delay(forMs);
    for (const link of links) {
      const others = (this.#breaks.get(link) ?? 1) - 1;
      this.#breaks.set(link, others);
      if (others === 0) await link.become('pass');
    }
  }

  #linksOf(part: Part): TcpProxy[] {
    if (this.#worker === null) return [];
    const { temporal, postgres, models } = this.#worker.links;
    if (part === 'to-temporal') return [temporal];
    if (part === 'to-postgres') return [postgres];
    return part === 'to-models' ? [models] : [temporal, postgres, models];
  }
}
