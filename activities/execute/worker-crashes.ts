/**
 * The part of an attempt's heartbeat details that the next attempt reads. Workers of two releases read each
 * other's notes, so the fields keep their names (docs/design/temporal.md#wire-names).
 */
export interface AttemptNote {
  /** Attempts before this one whose worker died. */
  readonly deaths: number;
  /** True while the attempt works. If it fails in order to wait, its last heartbeat says false. */
  readonly holding: boolean;
}

/**
 * How many earlier attempts of a chunk died with their worker, according to the last heartbeat. An attempt
 * that is deferred at once sends no heartbeat, so it does not count, and the note of the attempt before it
 * stays in place (docs/design/execution.md#poison-lines).
 *
 * @param details of the last heartbeat of any earlier attempt, perhaps of an older release
 */
export function crashesBefore(details: unknown, attempt: number): number {
  if (attempt <= 1 || typeof details !== 'object' || details === null) return 0;
  const { deaths, holding } = details as Partial<AttemptNote>;
  // Older releases send no note, and their attempts fail only if their worker dies.
  if (typeof deaths !== 'number' || typeof holding !== 'boolean') return attempt - 1;
  return deaths + (holding ? 1 : 0);
}
