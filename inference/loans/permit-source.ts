import type { LoanClaim } from '../../core/dispatch/permits/loan-shares';

/** Where a process has its permits from: its own limits, or loans from a limit that several processes share. */
export interface PermitSource {
  /**
   * The permits of one limit.
   * @param name tells it from others: the model, the gateway or the process
   * @param limit permits of all processes together
   * @param user who holds them and waits for them in this process
   */
  open(name: string, limit: number, user: PermitUser): PermitSupply;
}

/** The requests of this process at one limit. */
export interface PermitUser {
  readonly held: number;
  /** Permits that it can use at most; `Infinity` without such a bound. */
  readonly most: number;
  claims(): readonly LoanClaim[];
  /** There are more permits than before: gives them to those who wait. */
  onMore(): void;
}

/** The permits of one limit that this process may hold now. */
export interface PermitSupply {
  readonly permits: number;
  /** Call it when a request begins to wait. */
  onWait(): void;
  /** Call it when a permit was given back, with the number that is still held. */
  onFreed(held: number): void;
  /** The limit is no longer used: nothing is held, and nobody waits. */
  close(): void;
}

/** A process that shares its limits with no other one. */
export const OWN_PERMITS: PermitSource = {
  open: (_name, limit) => ({
    permits: limit,
    onWait: () => undefined,
    onFreed: () => undefined,
    close: () => undefined,
  }),
};
