import type { Part } from '../round/plan';
import { randomFrom, type Random } from '../round/random';

/** A fault of the calls of one kind, in the words of the simulator's settings. */
export interface CallFaultPlan {
  readonly call: string;
  readonly times: number;
  readonly status?: number;
  readonly retry_after_sec?: number;
  readonly drop?: boolean;
  readonly accepts?: boolean;
  readonly delay_ms?: number;
  readonly cut?: boolean;
}

/** How one provider behaves in a round: settings of the simulator (docs/design/simulator.md#providers). */
export interface ProviderPlan {
  readonly running_ms: number;
  readonly list_lag_ms: number;
  readonly results_lag_ms: number;
  readonly max_page: number;
  readonly ends: readonly string[];
  readonly results: readonly string[];
  readonly faults: readonly CallFaultPlan[];
}

/** What happens to a process, or to the link to all providers, in a round. */
export interface StrikePlan {
  readonly kind: 'kill' | 'freeze' | 'cut';
  readonly part: Part;
  readonly atMs: number;
  readonly forMs: number;
}

/** One round: all random choices, a pure function of seed and round number. */
export interface ProviderRound {
  /** One for each adapter. */
  readonly providers: readonly ProviderPlan[];
  readonly strikes: readonly StrikePlan[];
}

/** The time in which steps of jobs happen, so that strikes meet them. */
const LIVELY_MS = 8_000;
/** Longest delay of a call that takes effect, and of a job's way into the list: the `create_settle` of the stack. */
export const SETTLE_MS = 2_000;

const CALLS = {
  'files.create': 2,
  'batches.create': 5,
  'batches.list': 2,
  'batches.retrieve': 3,
  'files.content': 3,
} as const;

/** Plans a round for `count` adapters. */
export function planProviderRound(seed: number, round: number, count: number): ProviderRound {
  const random = randomFrom(seed * 1_000_003 + round);
  return {
    providers: Array.from({ length: count }, () => planProvider(random)),
    strikes: Array.from({ length: random.between(1, 3) }, () => planStrike(random)),
  };
}

function planProvider(random: Random): ProviderPlan {
  const some = <T>(from: readonly T[], chance: number): T[] =>
    from.filter(() => random.chance(chance));
  const isSecondRound = random.chance(0.3);
  return {
    running_ms: random.pick([0, 500, 3_000]),
    list_lag_ms: random.pick([0, 0, SETTLE_MS / 2]),
    results_lag_ms: random.pick([0, 0, 1_000]),
    max_page: random.pick([1, 100]),
    // The lines that such a job leaves are submitted a second time, which has to succeed.
    ends: isSecondRound
      ? [random.pick(['expired', 'failed', 'cancelled']), 'completed']
      : ['completed'],
    results: some(['shuffled', 'doubled', 'foreign'], 0.4),
    faults: Array.from({ length: random.between(0, 3) }, () => planFault(random)),
  };
}

function planFault(random: Random): CallFaultPlan {
  const call = random.weighted(CALLS);
  const base = { call, times: random.between(1, 2) };
  const accepts = random.chance(0.6);
  switch (random.weighted({ drop: 4, status: 3, busy: 1, late: 2, cut: 1 })) {
    case 'drop':
      return { ...base, drop: true, accepts };
    case 'status':
      return { ...base, status: random.pick([500, 503, 408]), accepts };
    case 'busy':
      return { ...base, status: 429, retry_after_sec: 1 };
    case 'late':
      return { ...base, drop: true, accepts: true, delay_ms: random.between(0, SETTLE_MS / 2) };
    case 'cut':
      return { ...base, cut: true };
  }
}

function planStrike(random: Random): StrikePlan {
  const atMs = random.between(0, LIVELY_MS);
  switch (random.weighted({ worker: 5, others: 3, freeze: 3, outage: 2 })) {
    case 'worker':
      return { kind: 'kill', part: 'worker', atMs, forMs: 0 };
    case 'others': {
      const part = random.pick(['api', 'temporal', 'postgres'] as const);
      return { kind: 'kill', part, atMs, forMs: 0 };
    }
    case 'freeze': {
      const part = random.pick(['worker', 'worker', 'postgres', 'temporal'] as const);
      return { kind: 'freeze', part, atMs, forMs: random.pick([500, 3_000, 12_000]) };
    }
    case 'outage':
      return { kind: 'cut', part: 'model-server', atMs, forMs: random.between(500, 4_000) };
  }
}
