/**
 * What an attempt at ingestion tells the next one with its heartbeats, so that a file that kills its
 * workers is given up, and no other file is.
 *
 * An attempt whose process died while it read the file makes the file suspect; the cause may have been
 * something else. A suspect file is read while its process reads no other file, and only deaths during
 * that count. An attempt that fails by itself, for example because PostgreSQL is away, says `left`, so it
 * never counts (docs/design/batch-path.md#files-that-kill-workers).
 */
export class IngestAttempt {
  /** Workers that died while they read only this file. */
  readonly crashes: number;
  readonly isSuspect: boolean;
  #phase: Phase;

  constructor({ attempt, heartbeatDetails }: { attempt: number; heartbeatDetails: unknown }) {
    const earlier = heartbeatDetails as Partial<IngestDetails> | null | undefined;
    const phase = attempt === 1 ? undefined : earlier == null ? 'reading' : earlier.phase;
    this.crashes = (earlier?.deaths ?? 0) + (phase === 'alone' ? 1 : 0);
    this.isSuspect = earlier?.suspect === true || phase === 'alone' || phase === 'reading';
    this.#phase = this.isSuspect ? 'waiting' : 'reading';
  }

  /** For heartbeats. */
  get details(): IngestDetails {
    return { phase: this.#phase, deaths: this.crashes, suspect: this.isSuspect };
  }

  /** From now on this process reads no other file: a death of the worker proves the file guilty. */
  readsExclusively(): void {
    this.#phase = 'alone';
  }

  /** The attempt ends by itself. */
  endByItself(): void {
    this.#phase = 'left';
  }
}

/** Proven crashes after which a file is not read again. */
export const MAX_CRASHES = 3;

/** `reading`: an attempt at a file that is not suspect, from its first heartbeat on. */
type Phase = 'reading' | 'waiting' | 'alone' | 'left';

/**
 * Part of each heartbeat of an ingestion. Workers of two releases read each other's details, so fields and
 * values keep their names (docs/design/temporal.md#wire-names).
 */
export interface IngestDetails {
  readonly phase: Phase;
  readonly deaths: number;
  readonly suspect: boolean;
}
