import type { Arrival, Disturbance, RoundEvidence } from '../checker/evidence';
import { lastSeen } from '../checker/evidence';
import type { Verdict } from '../checker/checker';
import type { RoundPlan } from './plan';

const SHOWN_VIOLATIONS = 20;

export interface RoundStory {
  readonly plan: RoundPlan;
  readonly evidence: RoundEvidence;
  readonly verdict: Verdict;
  /** The file with plan, evidence and verdict as JSON. */
  readonly file: string;
  /** Further flags of `npm run faults`. */
  readonly flags: string;
}

/** One line of a long run: the faults, and when each batch ended after its first sample. */
export function roundLine(round: number, { batches, disturbances }: RoundEvidence): string {
  const faults = disturbances.map(
    ({ kind, part, fromMs, toMs }) => `${kind} ${part} ${toMs - fromMs} ms`,
  );
  const ends = batches.map((batch) => {
    const [first, last] = [batch.samples[0], batch.samples.at(-1)];
    const tookMs = (last?.gotMs ?? 0) - (first?.sentMs ?? 0);
    return `${batch.plan.lines.length} ${lastSeen(batch)?.status} ${tookMs} ms`;
  });
  return `round ${round}: ${faults.join(', ')}; ${ends.join(', ')}`;
}

/** Everything needed to understand a failed round and to repeat it. */
export function describeRound({ plan, evidence, verdict, file, flags }: RoundStory): string {
  const { violations } = verdict;
  const startMs = Math.min(...evidence.batches.flatMap(({ samples }) => samples[0]?.sentMs ?? []));
  const at = (ms: number): string => `${ms - startMs} ms`;
  const { seed, round } = plan;
  const again = `npm run faults -- --seed ${seed} --first-round ${round} --rounds 1`;
  return [
    `${violations.length} violations in round ${round} of seed ${seed}`,
    ...violations
      .slice(0, SHOWN_VIOLATIONS)
      .map(({ rule, batch, detail }) => `  ${rule} ${batch}: ${detail.slice(0, 600)}`),
    'what struck:',
    ...evidence.disturbances.map(
      ({ kind, part, fromMs, toMs }) => `  ${kind} ${part} from ${at(fromMs)} to ${at(toMs)}`,
    ),
    'batches:',
    ...evidence.batches.map((batch) => {
      const { name, lines, windowSec, cancels } = batch.plan;
      const stops = `window ${windowSec ?? '-'} s, cancels ${JSON.stringify(cancels)}`;
      return `  ${name} ${batch.id}: ${lines.length} lines, ${stops}, ${lastSeen(batch)?.status}`;
    }),
    `forgiven: ${JSON.stringify(evidence.tolerance)}`,
    `play it again: ${again}${flags}`,
    `everything that was seen: ${file}`,
  ].join('\n');
}

/** What the faults cost over all rounds. */
export class FaultFigures {
  readonly #drainMs: number[] = [];
  readonly #redispatchMs: number[] = [];
  readonly #resentPerKill: number[] = [];
  readonly #inFlightAtKill: number[] = [];
  readonly #cancelMs: number[] = [];
  readonly #ends = new Map<string, number>();
  readonly #faults = new Map<string, number>();
  readonly #users = new Map<string, number>();
  #requests = 0;
  #lines = 0;
  #rounds = 0;

  add(evidence: RoundEvidence, verdict: Verdict): void {
    this.#rounds++;
    this.#requests += evidence.arrivals.length;
    for (const batch of evidence.batches) {
      this.#lines += batch.plan.lines.length;
      count(this.#ends, lastSeen(batch)?.status ?? 'unknown');
    }
    for (const fault of evidence.disturbances) {
      count(this.#faults, `${fault.kind} ${fault.part}`);
      if (fault.kind === 'drain' && fault.part.endsWith('worker'))
        this.#drainMs.push(fault.toMs - fault.fromMs);
      if (fault.kind === 'kill' && fault.part.endsWith('worker')) {
        this.#addKill(fault, evidence.arrivals, verdict);
      }
    }
    for (const batch of evidence.batches) this.#addCancel(batch, evidence);
    for (const { end, status } of evidence.users) count(this.#users, `${status ?? 'none'} ${end}`);
  }

  #addKill(fault: Disturbance, arrivals: readonly Arrival[], { resends }: Verdict): void {
    const own = resends.filter((resend) => resend.fault === fault);
    this.#resentPerKill.push(own.length);
    const running = arrivals.filter(
      ({ atMs, endedAtMs }) => atMs <= fault.fromMs && (endedAtMs ?? Infinity) >= fault.fromMs,
    );
    this.#inFlightAtKill.push(running.length);
    if (own.length > 0) {
      this.#redispatchMs.push(Math.min(...own.map(({ again }) => again.atMs)) - fault.fromMs);
    }
  }

  /** From a cancel to the last request of the batch, without faults nearby. */
  #addCancel({ id, cancels }: RoundEvidence['batches'][number], evidence: RoundEvidence): void {
    const taken = cancels.find(({ batch }) => batch?.status === 'cancelling');
    if (taken === undefined) return;
    const near = evidence.disturbances.some(
      ({ fromMs, toMs }) => fromMs < taken.gotMs + 3_000 && toMs > taken.sentMs - 10_000,
    );
    const hex = id.slice('batch_'.length);
    const last = Math.max(
      ...evidence.arrivals.filter(({ lineId }) => lineId.includes(hex)).map(({ atMs }) => atMs),
    );
    if (!near && last > taken.gotMs) this.#cancelMs.push(last - taken.gotMs);
  }

  toString(): string {
    return [
      `${this.#rounds} rounds, ${this.#lines} lines, ${this.#requests} requests`,
      `ends: ${shown(this.#ends)}`,
      `faults: ${shown(this.#faults)}`,
      ...(this.#users.size === 0 ? [] : [`answers to users: ${shown(this.#users)}`]),
      `worker killed → its lines sent again, ms: ${spread(this.#redispatchMs)}`,
      `in flight at the kill: ${spread(this.#inFlightAtKill)}`,
      `sent again for a kill: ${spread(this.#resentPerKill)}`,
      `SIGTERM → gone, ms: ${spread(this.#drainMs)}`,
      `cancel → last request, ms: ${spread(this.#cancelMs)}`,
    ].join('\n');
  }
}

function count(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function shown(map: ReadonlyMap<string, number>): string {
  return [...map].map(([key, times]) => `${times} × ${key}`).join(', ');
}

function spread(values: readonly number[]): string {
  if (values.length === 0) return '-';
  const sorted = [...values].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return `${sorted[0]} to ${sorted.at(-1)}, median ${median} (${sorted.length})`;
}
