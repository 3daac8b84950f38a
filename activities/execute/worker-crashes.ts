/**
 * What an attempt tells the next one with its heartbeats. Workers of two releases read each other's
 * notes, so the fields keep their names (docs/design/temporal.md#wire-names).
 */
export interface AttemptNote {
  /** Attempts before this one whose worker died. */
  readonly deaths: number;
  /** The attempt is at work. It takes this back with its last heartbeat if it ends by itself. */
  readonly holding: boolean;
}

/**
 * How many earlier attempts of a chunk died with their worker, according to the last heartbeat. An
 * attempt that only found that it must wait sends no heartbeat, so it neither counts nor hides a crash
 * before it (docs/design/execution.md#poison-lines).
 *
 * @param details of the last heartbeat of any earlier attempt, also of an older release
 */
export function crashesBefore(details: unknown, attempt: number): number {
  if (attempt <= 1 || typeof details !== 'object' || details === null) return 0;
  const { deaths, holding } = details as Partial<AttemptNote>;
  // In older releases an attempt fails only if its worker dies, and sends no note.
  if (typeof deaths !== 'number' || typeof holding !== 'boolean') return attempt - 1;
  return deaths + (holding ? 1 : 0);
}
