import type { Random } from './random';
import { randomFrom } from './random';

/** What the model server does with a line. The final answer does not depend on how often it is sent. */
export type LineKind =
  | 'fine'
  /** 429 or 503 at first, then fine. */
  | 'busy'
  /** The connection is closed without an answer at first, then fine. */
  | 'dropped'
  | 'refused'
  | 'broken'
  /** Names a model that no gateway serves. */
  | 'unrouted';

export interface LinePlan {
  readonly customId: string;
  readonly model: string;
  readonly kind: LineKind;
  readonly latencyMs: number;
}

export interface BatchPlan {
  readonly name: string;
  readonly submitAtMs: number;
  /** Completion window; null: a day. */
  readonly windowSec: number | null;
  readonly lines: readonly LinePlan[];
  /** Whether its lines go through a gateway of ours; false if left out. */
  readonly isThroughGateway?: boolean;
  /** Waves of cancels: when, after the creation of the batch, and how many at once. */
  readonly cancels: readonly { readonly afterMs: number; readonly together: number }[];
  /** When its input file is deleted, after its creation. Without this it is kept. */
  readonly deletesInputAfterMs?: number;
}

/**
 * `stack` is all processes at once, `supervisor` the process that starts the others. `to-…` are links of
 * the second worker only.
 */
export type Part =
  | 'worker'
  | 'second-worker'
  | 'api'
  | 'temporal'
  | 'postgres'
  /** The S3 server, if objects are there. */
  | 's3'
  /** If there is one in front of the model server. */
  | 'gateway'
  | 'model-server'
  | 'supervisor'
  | 'stack'
  | 'to-temporal'
  | 'to-postgres'
  | 'to-models'
  | 'to-all';
/**
 * `drain`: SIGTERM and a restart. `roll`: the same for one process after the other. `cut`: connections are
 * reset and refused. `hang`: connections stay open and deliver nothing.
 */
export type FaultKind = 'kill' | 'freeze' | 'drain' | 'roll' | 'cut' | 'hang';

/** A fault strikes at a time of the round, or when a share of a batch is answered. */
export interface FaultPlan {
  readonly kind: FaultKind;
  readonly part: Part;
  readonly forMs: number;
  readonly when:
    | { readonly atMs: number }
    | { readonly batch: string; readonly answeredShare: number; readonly afterMs: number };
}

/** One round of the schedule: all random choices, a pure function of seed and round number. */
export interface RoundPlan {
  readonly seed: number;
  readonly round: number;
  readonly batches: readonly BatchPlan[];
  readonly faults: readonly FaultPlan[];
}

/** Models that the stack has gateways for. */
export const ROUTED_MODELS = ['alpha', 'beta'] as const;
const MOODS: Readonly<Record<string, Readonly<Record<LineKind, number>>>> = {
  calm: { fine: 1, busy: 0, dropped: 0, refused: 0, broken: 0, unrouted: 0 },
  mixed: { fine: 80, busy: 8, dropped: 4, refused: 4, broken: 2, unrouted: 2 },
  sour: { fine: 5, busy: 20, dropped: 10, refused: 50, broken: 5, unrouted: 10 },
};
const MAX_LINES_A_ROUND = 700;
/** Each round begins with another one of these, so that a few rounds cover all of them. */
const FIRST_FAULTS: readonly (readonly [FaultKind, Part])[] = [
  ['kill', 'worker'],
  ['kill', 'temporal'],
  ['freeze', 'worker'],
  ['kill', 'postgres'],
  ['drain', 'worker'],
  ['kill', 'api'],
  ['cut', 'model-server'],
  ['freeze', 'temporal'],
];
/** In addition, if one worker runs: faults that strike everything at once. */
const WHOLE_FAULTS: typeof FIRST_FAULTS = [
  ['kill', 'stack'],
  ['roll', 'stack'],
  ['kill', 'supervisor'],
  ['drain', 'stack'],
];
/** In addition, and first, if objects are in an S3 server. */
const STORE_FAULTS: typeof FIRST_FAULTS = [
  ['kill', 's3'],
  ['freeze', 's3'],
];
/** In addition, and first, if a gateway is in front of the model server. */
const GATEWAY_FAULTS: typeof FIRST_FAULTS = [
  ['kill', 'gateway'],
  ['freeze', 'gateway'],
  ['drain', 'gateway'],
  ['cut', 'model-server'],
];
/** In addition, if two workers run: faults that strike the links of one. */
const LINK_FAULTS: typeof FIRST_FAULTS = [
  ['cut', 'to-temporal'],
  ['hang', 'to-all'],
  ['hang', 'to-postgres'],
  ['cut', 'to-all'],
  ['hang', 'to-temporal'],
  ['cut', 'to-models'],
  ['cut', 'to-postgres'],
];

export interface PlanOptions {
  readonly seed: number;
  readonly round: number;
  /** Whether a second worker runs, which faults may strike too. */
  readonly twoWorkers: boolean;
  readonly store: 'filesystem' | 's3';
  /** Whether a gateway is in front of the model server. */
  readonly hasGateway: boolean;
}

export function planRound({ seed, round, ...rest }: PlanOptions): RoundPlan {
  const random = randomFrom(Math.imul(seed, 7_919) + round);
  const batches: BatchPlan[] = [];
  let room = MAX_LINES_A_ROUND;
  for (let i = random.between(4, 7); i > 0 && room > 0; i--) {
    const batch = planBatch(random, `s${seed}-r${round}-b${batches.length}`, room);
    room -= batch.lines.length;
    batches.push(rest.hasGateway ? { ...batch, isThroughGateway: true } : batch);
  }
  return { seed, round, batches, faults: planFaults(random, round, { batches, ...rest }) };
}

function planBatch(random: Random, name: string, room: number): BatchPlan {
  const size = random.weighted({ one: 2, few: 2, some: 3, many: 3 });
  const bounds = { one: [1, 1], few: [2, 9], some: [10, 90], many: [100, 300] } as const;
  const count = Math.min(room, random.between(bounds[size][0], bounds[size][1]));
  const mood = MOODS[random.weighted({ calm: 4, mixed: 5, sour: 1 })]!;
  const models = random.chance(0.5) ? ROUTED_MODELS : [random.pick(ROUTED_MODELS)];
  const latencyMs = random.pick([5, 40, 120, 300]);
  const lines = Array.from({ length: count }, (_, i): LinePlan => {
    const kind = random.weighted(mood);
    const model = kind === 'unrouted' ? 'nobody' : random.pick(models);
    const spreadMs = random.between(0, latencyMs);
    // A broken line is retried many times, which must not take longer than the round.
    const ownMs = kind === 'broken' ? 5 : latencyMs + spreadMs;
    return { customId: `${name}-${i}`, model, kind, latencyMs: ownMs };
  });
  return {
    name,
    lines,
    submitAtMs: random.between(0, 2_500),
    windowSec: random.chance(0.25) ? random.between(1, 5) : null,
    cancels: random.chance(0.25) ? planCancels(random) : [],
    ...(random.chance(0.15) ? { deletesInputAfterMs: random.between(0, 2_500) } : {}),
  };
}

function planCancels(random: Random): BatchPlan['cancels'] {
  const first = { afterMs: random.between(0, 3_000), together: random.between(1, 3) };
  if (random.chance(0.5)) return [first];
  const afterMs = first.afterMs + random.between(0, 1_500);
  return [first, { afterMs, together: random.between(1, 2) }];
}

interface Scene extends Pick<PlanOptions, 'twoWorkers' | 'store' | 'hasGateway'> {
  readonly batches: readonly BatchPlan[];
}

function planFaults(random: Random, round: number, scene: Scene): FaultPlan[] {
  const single = [
    ...(scene.hasGateway ? GATEWAY_FAULTS : []),
    ...(scene.store === 's3' ? STORE_FAULTS : []),
    ...FIRST_FAULTS,
  ];
  const own = [...single, ...(scene.twoWorkers ? LINK_FAULTS : WHOLE_FAULTS)];
  const first = own[round % (own.length + 1)];
  // The last round of each cycle has no faults, only cancels and windows.
  if (first === undefined) return [];
  const chosen = [first];
  // While a stack restarts it has no parts to strike.
  const others = scene.twoWorkers ? own : single;
  const more = isWhole(first) ? 0 : random.between(0, 2);
  for (let i = more; i > 0; i--) chosen.push(random.pick(others));
  return chosen.map(([kind, part], i) => ({
    kind,
    part: part === 'worker' && scene.twoWorkers ? random.pick(['worker', 'second-worker']) : part,
    forMs: faultMs(random, [kind, part], scene),
    when: i === 0 ? amidTheLargest(random, scene.batches) : planMoment(random, scene.batches),
  }));
}

function isWhole([, part]: readonly [FaultKind, Part]): boolean {
  return part === 'stack' || part === 'supervisor';
}

/**
 * Most freezes and cuts from Temporal last longer than the heartbeat timeout of 3 s. Half of the cuts behind a gateway
 * last longer than all its time limits.
 */
function faultMs(
  random: Random,
  [kind, part]: readonly [FaultKind, Part],
  { hasGateway }: Scene,
): number {
  if (kind === 'cut' && hasGateway && random.chance(0.5)) return random.between(4_000, 7_000);
  if (kind === 'freeze' || part.startsWith('to-')) return random.between(1_500, 6_500);
  return kind === 'cut' ? random.between(300, 1_500) : 0;
}

/** In the middle of the largest batch, which has the most to lose. */
function amidTheLargest(random: Random, batches: readonly BatchPlan[]): FaultPlan['when'] {
  const unstopped = batches.filter((batch) => batch.windowSec === null && !batch.cancels.length);
  const candidates = unstopped.length > 0 ? unstopped : [...batches];
  const [largest] = candidates.sort((a, b) => b.lines.length - a.lines.length);
  const answeredShare = random.between(5, 80) / 100;
  return { batch: largest!.name, answeredShare, afterMs: random.between(0, 150) };
}

/** Fixed times hit ingestion and execution; shares of answers hit execution and finalization. */
function planMoment(random: Random, batches: readonly BatchPlan[]): FaultPlan['when'] {
  if (random.chance(0.4)) return { atMs: random.between(300, 4_000) };
  const answeredShare = random.pick([0.3, 0.7, 1]);
  return { batch: random.pick(batches).name, answeredShare, afterMs: random.between(0, 150) };
}
