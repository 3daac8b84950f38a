import { TEMPORAL_LIMITS } from '../../core/batch/temporal-bounds';
import { uncovered } from '../../core/journal/coverage';
import type { SealInfo } from '../../storage/journal/journal-store';
import type { UnansweredRange } from '../contract';
import type { PlanRanges } from './plan-offsets';

/** Positions that no seal covers, by model. Rest objects do not count as coverage. */
export function uncoveredRanges(
  entries: Readonly<Record<string, number>>,
  seals: readonly Pick<SealInfo, 'safeModel' | 'range'>[],
): PlanRanges[] {
  const models = Object.entries(entries).map(([safeModel, count]) => {
    const covered = seals
      .filter((seal) => seal.safeModel === safeModel)
      .map((seal) => seal.range)
      .filter((range) => range !== null);
    return { safeModel, ranges: uncovered(covered, count) };
  });
  return models.filter(({ ranges }) => ranges.length > 0);
}

/**
 * The ranges in their wire format. A result carries at most 500. If there are more, each model gets one
 * range from its first to its last uncovered position, and chunks skip the answers in between
 * (docs/design/ends.md#unanswered-ranges).
 */
export function unansweredRanges(uncovered: readonly PlanRanges[]): UnansweredRange[] {
  const all = uncovered.flatMap(({ safeModel, ranges }) =>
    ranges.map(({ from, to }) => ({ safe: safeModel, from, to })),
  );
  if (all.length <= TEMPORAL_LIMITS.ranges) return all;
  return uncovered.map(({ safeModel, ranges }) => ({
    safe: safeModel,
    from: ranges[0]?.from ?? 0,
    to: ranges.at(-1)?.to ?? 0,
  }));
}
