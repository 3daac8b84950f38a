import { SharedLimit } from './shared-limit';
import type { ClaimsMessage, LimitClaims, LoanMessage } from './loan-messages';

/** How often shares that are not whole numbers are rounded anew, so that the rests take turns. */
const TURN_MS = 100;

/** One process that borrows. */
export interface LoanAccount {
  /** It said what it has and wants. */
  onClaims(message: ClaimsMessage): void;
  /** It has ended, so that it holds nothing any more. */
  close(): void;
}

/**
 * Lends the permits of limits that several processes share. What all of them may hold together never exceeds a limit:
 * a permit is lent to the next one only when the process that had it has given it back, or has ended
 * (docs/design/permits.md#several-processes).
 */
export class LoanDesk {
  readonly #weightOf: (tenant: string) => number;
  readonly #limits = new Map<string, SharedLimit>();
  readonly #turns: NodeJS.Timeout;
  #messages = 0;

  /** @param weightOf the weight of a tenant, above 0 */
  constructor(weightOf: (tenant: string) => number) {
    this.#weightOf = weightOf;
    this.#turns = setInterval(() => this.#takeTurns(), TURN_MS);
    this.#turns.unref();
  }

  /** Opens an account for a process that has no permits yet. `send` takes messages to it, in their order. */
  open(send: (message: LoanMessage) => void): LoanAccount {
    const account = { send };
    return {
      onClaims: ({ limits }) => {
        for (const claims of limits) {
          const limit = this.#limits.get(claims.name) ?? this.#create(claims);
          this.#limits.set(claims.name, limit);
          limit.onClaims(account, claims);
          if (limit.isIdle) this.#limits.delete(claims.name);
        }
      },
      close: () => {
        for (const limit of this.#limits.values()) limit.onEnded(account);
      },
    };
  }

  close(): void {
    clearInterval(this.#turns);
  }

  #create({ name, limit }: LimitClaims): SharedLimit {
    const weightOf = this.#weightOf;
    return new SharedLimit({ name, limit, weightOf, nextNumber: () => ++this.#messages });
  }

  #takeTurns(): void {
    for (const limit of this.#limits.values()) limit.takeTurns();
  }
}
