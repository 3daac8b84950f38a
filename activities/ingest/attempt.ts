/**
 * What an attempt at ingestion tells the next one with its heartbeats, so that a file that kills its
 * workers is given up, and nothing else is.
 *
 * An attempt whose process died while it read the file makes the file suspect: something else may have
 * been the killer. A suspect is read while no other file is read in that process, and only deaths during
 * that count. An attempt that fails by itself, because PostgreSQL or the store is away, says `left`.
 */
export class IngestAttempt {
  /** Deaths while this file alone was read. */
  readonly deaths: number;
  readonly isSuspect: boolean;
  #phase: Phase;

  constructor({ attempt, heartbeatDetails }: { attempt: number; heartbeatDetails: unknown }) {
    const earlier = heartbeatDetails as Partial<IngestDetails> | null | undefined;
    const phase = attempt === 1 ? undefined : earlier == null ? 'reading' : earlier.phase;
    this.deaths = (earlier?.deaths ?? 0) + (phase === 'alone' ? 1 : 0);
    this.isSuspect = earlier?.suspect === true || phase === 'alone' || phase === 'reading';
    this.#phase = this.isSuspect ? 'waiting' : 'reading';
  }

  get details(): IngestDetails {
    return { phase: this.#phase, deaths: this.deaths, suspect: this.isSuspect };
  }

  /** A suspect is about to be read alone: a death from now on is its own. */
  readsAlone(): void {
    this.#phase = 'alone';
  }

  /** The attempt ends by itself. */
  leave(): void {
    this.#phase = 'left';
  }
}

/** Deaths after which a file is not read again. */
export const MAX_DEATHS = 3;

/** `reading`: an attempt that is not suspect, from its first heartbeat on. */
type Phase = 'reading' | 'waiting' | 'alone' | 'left';

/** Part of each heartbeat of an ingestion. */
export interface IngestDetails {
  readonly phase: Phase;
  readonly deaths: number;
  readonly suspect: boolean;
}
