import { setTimeout as delay } from 'node:timers/promises';
import { isTerminal } from '../../../core/batch/status';
import type {
  BatchEvidence,
  BatchView,
  CancelCall,
  Disturbance,
  RoundEvidence,
  Sample,
  Tolerance,
} from '../checker/evidence';
import { inputText } from './answers';
import type { FaultsApi } from './api';
import type { FaultsModelServer } from './model-server';
import type { FaultsParts } from './parts';
import type { BatchPlan, FaultPlan, RoundPlan } from './plan';
import { startUsers } from './users';
import { until } from '../../support/until';

export interface RoundScene {
  readonly api: FaultsApi;
  readonly modelServer: FaultsModelServer;
  readonly parts: FaultsParts;
  readonly tolerance: Tolerance;
  /** Base URL of the gateway, which users call too; null without one. */
  readonly gatewayUrl: string | null;
}

const POLL_MS = 60;
/** The longest life of a batch under any faults. */
const END_LIMIT_MS = 120_000;
const MOMENT_LIMIT_MS = 20_000;

/** Plays one round against the stack and returns what was observed. */
export async function playRound(plan: RoundPlan, scene: RoundScene): Promise<RoundEvidence> {
  const { modelServer } = scene;
  const firstArrival = modelServer.arrivals.length;
  modelServer.lateness.takeMs();
  const play = new Play(scene, firstArrival);
  const users = startUsers(scene.gatewayUrl);
  const [batches, disturbances] = await Promise.all([
    Promise.all(plan.batches.map((batch) => play.batch(batch))),
    Promise.all(plan.faults.map((fault) => play.fault(fault))),
  ]);
  const userCalls = await users.stop();
  // Wait for late requests: nothing may be sent for batches that have ended.
  await delay(500);
  const lagMs = modelServer.lateness.takeMs();
  const { tolerance } = scene;
  return {
    batches: await Promise.all(batches.map((batch) => play.withFiles(batch))),
    users: userCalls,
    disturbances: disturbances.flatMap((one) => (one === null ? [] : [one])),
    arrivals: modelServer.arrivals.slice(firstArrival),
    // Delays of this process are not delays of the product.
    tolerance: {
      ...tolerance,
      clockMs: tolerance.clockMs + lagMs,
      lastFlushMs: tolerance.lastFlushMs + lagMs,
    },
  };
}

interface Watched {
  readonly plan: BatchPlan;
  readonly id: string;
  readonly samples: Sample[];
  readonly cancels: CancelCall[];
}

class Play {
  readonly #scene: RoundScene;
  readonly #firstArrival: number;
  readonly #startedMs = Date.now();
  readonly #known = new Map<string, Watched>();
  #open = 0;

  constructor(scene: RoundScene, firstArrival: number) {
    this.#scene = scene;
    this.#firstArrival = firstArrival;
  }

  async batch(plan: BatchPlan): Promise<Watched> {
    this.#open++;
    try {
      const { api } = this.#scene;
      await delay(plan.submitAtMs);
      const fileId = await api.upload(inputText(plan));
      const window = plan.windowSec === null ? '24h' : `${plan.windowSec}s`;
      const id = await api.create({ fileId, window, name: plan.name });
      const watched: Watched = { plan, id, samples: [], cancels: [] };
      this.#known.set(plan.name, watched);
      const waves = plan.cancels.flatMap(({ afterMs, together }) =>
        Array.from({ length: together }, () => this.#cancel(watched, afterMs)),
      );
      await Promise.all([this.#watch(watched), this.#deleteInput(plan, fileId), ...waves]);
      return watched;
    } finally {
      this.#open--;
    }
  }

  async #watch({ id, samples }: Watched): Promise<void> {
    const untilMs = performance.now() + END_LIMIT_MS;
    let after = 2;
    // Sampled again after the end, when it must not change any more.
    while (performance.now() < untilMs && after > 0) {
      const sentMs = Date.now();
      const batch = await this.#scene.api.look(id);
      if (batch !== null) {
        samples.push({ sentMs, gotMs: Date.now(), batch });
        if (isTerminal(batch.status)) after--;
      }
      await delay(POLL_MS);
    }
  }

  async #deleteInput({ deletesInputAfterMs: afterMs }: BatchPlan, fileId: string): Promise<void> {
    if (afterMs === undefined) return;
    await delay(afterMs);
    await this.#scene.api.remove(fileId);
  }

  async #cancel({ id, cancels }: Watched, afterMs: number): Promise<void> {
    await delay(afterMs);
    const untilMs = performance.now() + END_LIMIT_MS;
    while (performance.now() < untilMs) {
      const sentMs = Date.now();
      const answered = await this.#scene.api.cancel(id);
      if (answered !== null) {
        cancels.push({ sentMs, gotMs: Date.now(), ...answered });
        return;
      }
      await delay(POLL_MS);
    }
  }

  async fault(fault: FaultPlan): Promise<Disturbance | null> {
    if (!(await this.#moment(fault.when))) return null;
    return this.#scene.parts.strike(fault);
  }

  /** False if the moment cannot come any more. */
  async #moment(when: FaultPlan['when']): Promise<boolean> {
    if ('atMs' in when) {
      await delay(this.#startedMs + when.atMs - Date.now());
      return true;
    }
    const isThere = (): boolean =>
      this.#hasEnded(when.batch) || this.#share(when.batch) >= when.answeredShare;
    const over = (): boolean => this.#open === 0;
    await until(() => isThere() || over(), MOMENT_LIMIT_MS, 'a moment', 5).catch(() => null);
    if (over()) return false;
    await delay(when.afterMs);
    return true;
  }

  #hasEnded(name: string): boolean {
    const last = this.#known.get(name)?.samples.at(-1);
    return last !== undefined && isTerminal(last.batch.status);
  }

  /** The answered share of a batch's lines. */
  #share(name: string): number {
    const watched = this.#known.get(name);
    if (watched === undefined) return 0;
    const hex = watched.id.slice('batch_'.length);
    const { arrivals } = this.#scene.modelServer;
    const lines = new Set<string>();
    for (let i = this.#firstArrival; i < arrivals.length; i++) {
      const { lineId, end } = arrivals[i]!;
      if (end === 'answered' && lineId.includes(hex)) lines.add(lineId);
    }
    return lines.size / watched.plan.lines.length;
  }

  async withFiles(watched: Watched): Promise<BatchEvidence> {
    const end: BatchView | undefined = watched.samples.at(-1)?.batch;
    const text = async (fileId: string | null | undefined): Promise<string | null> =>
      fileId == null ? null : this.#scene.api.content(fileId);
    const output = await text(end?.output_file_id);
    return { ...watched, output, errors: await text(end?.error_file_id) };
  }
}
