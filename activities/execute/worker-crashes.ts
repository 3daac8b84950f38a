/** What an attempt tells the next one with its heartbeats. */
export interface AttemptNote {
  /** Attempts before this one that died. */
  readonly deaths: number;
  /** The attempt is at work: had it ended by itself, its last heartbeat would deny it. */
  readonly holding: boolean;
}

/**
 * How many earlier attempts of a chunk died, as far as the last heartbeat tells. Attempts that only
 * found that they have to wait send none, so that they neither count nor hide a death before them.
 *
 * @param details of the last heartbeat of any earlier attempt; anything, for older workers sent others
 */
export function crashesBefore(details: unknown, attempt: number): number {
  if (attempt <= 1 || typeof details !== 'object' || details === null) return 0;
  const { deaths, holding } = details as Partial<AttemptNote>;
  // A worker of an older version fails a chunk by dying alone, and counts nothing.
  if (typeof deaths !== 'number' || typeof holding !== 'boolean') return attempt - 1;
  return deaths + (holding ? 1 : 0);
}
