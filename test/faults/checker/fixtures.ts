import type { BatchStatus } from '../../../core/batch/status';
import { checkRound } from './checker';
import type {
  Arrival,
  BatchEvidence,
  BatchView,
  Disturbance,
  RoundEvidence,
  Sample,
} from './evidence';
import { expectedLines } from './expect';
import { requestBody } from '../round/answers';
import type { BatchPlan, LineKind } from '../round/plan';

export const ID = `batch_${'a'.repeat(32)}`;
export const CREATED_SEC = 1_000_000;
export const NOW_MS = CREATED_SEC * 1_000;
export const KINDS: readonly LineKind[] = [
  'fine',
  'refused',
  'fine',
  'busy',
  'broken',
  'unrouted',
  'fine',
];
export const PLAN: BatchPlan = {
  name: 'b',
  submitAtMs: 0,
  windowSec: 60,
  cancels: [],
  lines: KINDS.map((kind, i) => ({
    customId: `c-${i}`,
    model: kind === 'unrouted' ? 'nobody' : 'alpha',
    kind,
    latencyMs: 10,
  })),
};
export const LINES = expectedLines(PLAN, ID);
export const OUTPUT = LINES.filter(({ answered }) => answered.file === 'output');
export const ERRORS = LINES.filter(({ answered }) => answered.file === 'errors');

export function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

export function view(status: BatchStatus, over: Partial<BatchView> = {}): BatchView {
  const past = (times: readonly BatchStatus[]): number | null =>
    times.includes(status) ? CREATED_SEC + 1 : null;
  return {
    id: ID,
    status,
    created_at: CREATED_SEC,
    in_progress_at: status === 'validating' ? null : CREATED_SEC + 1,
    expires_at: CREATED_SEC + 60,
    finalizing_at: past(['finalizing', 'completed']),
    completed_at: past(['completed']),
    failed_at: past(['failed']),
    expired_at: past(['expired']),
    cancelling_at: past(['cancelling', 'cancelled']),
    cancelled_at: past(['cancelled']),
    output_file_id: null,
    error_file_id: null,
    request_counts: { total: KINDS.length, completed: 0, failed: 0 },
    usage: {
      input_tokens: 0,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      total_tokens: 0,
    },
    ...over,
  };
}

/** Counts and usage of the whole batch, worked out by hand from `tokensOf`. */
export const WHOLE: Partial<BatchView> = {
  request_counts: { total: 7, completed: 4, failed: 3 },
  usage: {
    input_tokens: 5 + 7 + 8 + 11,
    input_tokens_details: { cached_tokens: 0 + 2 + 0 + 0 },
    output_tokens: 1 + 3 + 4 + 7,
    total_tokens: 31 + 15,
  },
};

export function samples(...batches: BatchView[]): Sample[] {
  return batches.map((batch, i) => {
    const sentMs = NOW_MS + 1_000 + 100 * i;
    return { sentMs, gotMs: sentMs + 10, batch };
  });
}

export const LIFE = samples(view('validating'), view('in_progress'), view('completed', WHOLE));

export function arrival(index: number, over: Partial<Arrival> = {}): Arrival {
  const line = LINES[index]!;
  return {
    lineId: line.lineId,
    atMs: NOW_MS + 500,
    body: requestBody(line),
    final: line.line.kind !== 'broken',
    end: 'answered',
    endedAtMs: NOW_MS + 510,
    ...over,
  };
}

export const SENT = KINDS.flatMap((kind, i) => (kind === 'unrouted' ? [] : [arrival(i)]));

export interface Scene {
  batch?: Partial<BatchEvidence>;
  arrivals?: readonly Arrival[];
  disturbances?: readonly Disturbance[];
}

export function round({
  batch = {},
  arrivals = SENT,
  disturbances = [],
}: Scene = {}): RoundEvidence {
  const whole: BatchEvidence = {
    plan: PLAN,
    id: ID,
    samples: LIFE,
    cancels: [],
    output: textOf(OUTPUT.map(({ answered }) => answered.text)),
    errors: textOf(ERRORS.map(({ answered }) => answered.text)),
    ...batch,
  };
  const tolerance = { lastFlushMs: 200, clockMs: 50, cancelGraceMs: 2_000 };
  return { batches: [whole], users: [], arrivals, disturbances, tolerance };
}

export function rules(scene: Scene): string[] {
  return [...new Set(checkRound(round(scene)).violations.map(({ rule }) => rule))];
}

export const KILL: Disturbance = {
  kind: 'kill',
  part: 'worker',
  fromMs: NOW_MS + 600,
  toMs: NOW_MS + 900,
};
