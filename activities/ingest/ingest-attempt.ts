/**
 * The state of an attempt at ingestion that travels in its heartbeats to the next attempt. It lets a file
 * that kills its workers be given up, and no other file.
 *
 * If a worker dies while it reads a file, the file becomes suspect, because the cause may have been
 * something else. A suspect file is read while the process reads no other file, and only deaths during such
 * a read count. An attempt that fails by itself, for example because PostgreSQL is away, ends in phase
 * `left` and never counts (docs/design/batch-path.md#files-that-kill-workers).
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

  /** Call it when this process reads only this file. A death of the worker then proves the file guilty. */
  readsExclusively(): void {
    this.#phase = 'alone';
  }

  /** Call it when the attempt ends by itself. */
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
