import type { ArmRecord } from './run-arm';
import { KNEE } from './scene-plan';

/** What one arm showed. */
export interface ArmFigures {
  readonly name: string;
  /** Time to the first token of users, ms. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly linesPerSec: number;
  /** Lines per second as a share of the answers per second that users left free; null without a batch. */
  readonly idleUsed: number | null;
  /** Users' requests without an answer. */
  readonly failed: number;
}

/**
 * The first seconds of each arm do not count: queues of engines fill, and the gateway learns what the engines can do.
 */
export const LEAD_MS = 8_000;

/** The figures of an arm. @param capacity answers per second at the knee */
export function figuresOf(name: string, record: ArmRecord, capacity: number): ArmFigures {
  const { failed, tookMs } = record;
  const countedSec = (tookMs - LEAD_MS) / 1_000;
  const answers = record.answers.filter(({ dueMs }) => dueMs >= LEAD_MS);
  const times = answers.filter(({ isUser }) => isUser).map(({ ttftMs }) => ttftMs);
  const perSec = (isUser: boolean): number =>
    record.answers.filter(
      ({ isUser: is, endMs }) => is === isUser && endMs >= LEAD_MS && endMs <= tookMs,
    ).length / countedSec;
  const linesPerSec = perSec(false);
  const idle = Math.max(1, capacity - perSec(true));
  return {
    ...{ name, failed, linesPerSec },
    ...{ p50: quantile(times, 0.5), p95: quantile(times, 0.95), p99: quantile(times, 0.99) },
    idleUsed: linesPerSec === 0 ? null : linesPerSec / idle,
  };
}

/** The least value that at least `share` of all do not exceed; 0 of none. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** A table of all arms, and what it means. */
export function sceneTable(figures: readonly ArmFigures[]): string[][] {
  const head = ['', 'TTFT p50', 'p95', 'p99', 'lines/s', 'idle capacity used'];
  return [head, ...figures.map(rowOf)];
}

function rowOf({ name, p50, p95, p99, linesPerSec, idleUsed }: ArmFigures): string[] {
  const times = [p50, p95, p99].map((ms) => `${Math.round(ms)} ms`);
  const used = idleUsed === null ? '-' : `${Math.round(100 * idleUsed)} %`;
  return [name, ...times, linesPerSec === 0 ? '-' : linesPerSec.toFixed(1), used];
}

const BAR_CELLS = 30;
const BAR_MS = 10_000;
const BAR_FROM_MS = 30;

/** One second of an arm as a line with a bar, on a logarithmic scale from 30 ms to 10 s. */
export function secondLine(second: number, times: readonly number[], lines: number): string {
  const p95 = quantile(times, 0.95);
  const part = Math.log(Math.max(BAR_FROM_MS, p95) / BAR_FROM_MS) / Math.log(BAR_MS / BAR_FROM_MS);
  const bar = '█'.repeat(Math.min(BAR_CELLS, Math.round(part * BAR_CELLS)));
  const text = times.length === 0 ? '-' : `${Math.round(p95)} ms`;
  const batch = '▒'.repeat(Math.min(BAR_CELLS, Math.round((lines / KNEE) * (BAR_CELLS / 2))));
  return `${String(second).padStart(4)} s  p95 ${text.padStart(8)} ${bar.padEnd(BAR_CELLS)}  lines/s ${String(lines).padStart(3)} ${batch}`;
}
