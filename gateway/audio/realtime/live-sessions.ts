import type { LiveSession } from './live-session';

/** How often a shutdown looks whether sessions have become idle. */
const LOOK_MS = 50;

/** The live sessions of the gateway. */
export class LiveSessions {
  readonly #sessions = new Set<LiveSession>();
  #endsAtMs: number | null = null;

  /** How many there are. */
  get active(): number {
    return this.#sessions.size;
  }

  /** A new session. It is ended at once if the gateway shuts down. */
  add(session: LiveSession): void {
    this.#sessions.add(session);
    if (this.#endsAtMs !== null) session.shutDown();
  }

  /** A session has ended. */
  remove(session: LiveSession): void {
    this.#sessions.delete(session);
  }

  /**
   * Ends all sessions: those that wait for a transcript when they have it, or after `graceMs`
   * (docs/design/realtime.md#shutdown).
   */
  close(graceMs: number): void {
    if (this.#endsAtMs !== null) return;
    this.#endsAtMs = performance.now() + graceMs;
    const timer = setInterval(() => {
      this.#endIdle();
      if (this.#sessions.size === 0) clearInterval(timer);
    }, LOOK_MS);
    this.#endIdle();
  }

  #endIdle(): void {
    const isLate = performance.now() >= (this.#endsAtMs ?? 0);
    for (const session of [...this.#sessions]) {
      if (isLate || !session.hasOpenWork) session.shutDown();
    }
  }
}
