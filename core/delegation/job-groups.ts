/** A job's place in the plan: positions `[from, to)`. */
interface Placed {
  readonly from: number;
  readonly to: number;
}

/**
 * Jobs that follow each other in the plan without a gap, up to `perPart` in each group. A part runs a group, so that
 * a provider with small jobs needs few events for many of them (docs/design/delegation.md#parts-of-several-jobs).
 */
export function groupJobs<Job extends Placed>(jobs: readonly Job[], perPart: number): Job[][] {
  const inOrder = [...jobs].sort((a, b) => a.from - b.from);
  const groups: Job[][] = [];
  for (const job of inOrder) {
    const group = groups.at(-1);
    const fits = group !== undefined && group.length < perPart && group.at(-1)?.to === job.from;
    if (fits) group.push(job);
    else groups.push([job]);
  }
  return groups;
}
