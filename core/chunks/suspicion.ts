import type { OpenRange } from './open-ranges';

/** After this many failed attempts a chunk's lines are suspected, not its workers. */
const ATTEMPTS = 3;
/** One failure of a half is enough to halve it again. The proof comes later, when one line is left. */
const ATTEMPTS_OF_A_HALF = 1;

/** How a range is run, given its failures so far. */
export interface Suspicion {
  /** Attempts that may fail before the range is given back as failed. */
  readonly attempts: number;
  /** The range is one suspect line: nothing else is in flight in its process while it is sent. */
  readonly exclusive: boolean;
  /** The suspect line has failed exclusively. It ends as `internal_error` if the journal proves it guilty. */
  readonly mayBePoison: boolean;
}

/** How to isolate a line that kills its workers (docs/design/execution.md#poison-lines). */
export function suspicionOf({ from, to, failures }: OpenRange): Suspicion {
  const isSuspect = failures !== undefined;
  const exclusive = isSuspect && to - from === 1;
  return {
    attempts: isSuspect && !exclusive ? ATTEMPTS_OF_A_HALF : ATTEMPTS,
    exclusive,
    mayBePoison: exclusive && failures > 0,
  };
}
