import { loanShares, wholeShares, type LoanClaim } from '../../core/dispatch/permits/loan-shares';
import type { LimitClaims, LoanMessage } from './loan-messages';

/** A process, by how it is told what it may hold. */
export interface LoanReceiver {
  send(message: LoanMessage): void;
}

/** What a process has of the limit. */
interface Loan {
  claims: readonly LoanClaim[];
  most: number;
  /** What it was last told that it may hold. */
  told: number;
  /** What it may hold at most: more than `told` until it has said that it gave the rest back. */
  lent: number;
  /** Number of the last message to it. */
  number: number;
  /** What rounding owes it, in permits. */
  credit: number;
  /** Its exact and its rounded share. */
  share: number;
  whole: number;
}

/** A process is owed at most so many permits, so that an old debt does not outlive its reason. */
const MAX_CREDIT = 2;

/** What a shared limit is made from. */
export interface SharedLimitOptions {
  readonly name: string;
  /** Permits of all processes together. */
  readonly limit: number;
  /** The weight of a tenant, above 0. */
  readonly weightOf: (tenant: string) => number;
  /** A number that no message had before. */
  readonly nextNumber: () => number;
}

/** One limit of several processes, and what each of them has of it. */
export class SharedLimit {
  readonly #o: SharedLimitOptions;
  readonly #loans = new Map<LoanReceiver, Loan>();

  constructor(options: SharedLimitOptions) {
    this.#o = options;
  }

  /** Whether it can be forgotten: nobody has any of it, or wants any. */
  get isIdle(): boolean {
    return [...this.#loans.values()].every(
      ({ lent, claims, told }) => lent === 0 && told === 0 && claims.length === 0,
    );
  }

  onClaims(from: LoanReceiver, { claims, most, seen, kept }: LimitClaims): void {
    const loan = this.#loans.get(from) ?? newLoan();
    this.#loans.set(from, loan);
    loan.claims = claims;
    loan.most = most ?? Infinity;
    // What it says of an older message is no longer true of a newer one.
    if (seen === loan.number) loan.lent = Math.max(loan.told, kept);
    this.#lend();
  }

  onEnded(from: LoanReceiver): void {
    if (this.#loans.delete(from)) this.#lend();
  }

  /** Gives the rests of shares to others than before, if there are rests. */
  takeTurns(): void {
    let isUneven = false;
    for (const loan of this.#loans.values()) {
      const owed = loan.credit + loan.share - loan.whole;
      loan.credit = Math.min(MAX_CREDIT, Math.max(-MAX_CREDIT, owed));
      isUneven ||= loan.share !== loan.whole;
    }
    if (isUneven) this.#lend();
  }

  /**
   * Lends what is free to those who have less than their share. Only if that is not enough, calls in what others have
   * above theirs: permits that nobody needs elsewhere stay where they were used last.
   */
  #lend(): void {
    const loans = [...this.#loans];
    this.#share(loans.map(([, loan]) => loan));
    let free = this.#o.limit - loans.reduce((sum, [, { lent }]) => sum + lent, 0);
    let isShort = false;
    for (const [to, loan] of loans) {
      if (loan.whole <= loan.told) continue;
      const permits = Math.min(loan.whole, loan.lent + Math.max(0, free));
      isShort ||= permits < loan.whole;
      if (permits <= loan.told) continue;
      free -= Math.max(0, permits - loan.lent);
      loan.lent = Math.max(loan.lent, permits);
      this.#tell(to, loan, permits);
    }
    for (const [to, loan] of loans) {
      const isUnused = loan.most === 0 && loan.claims.length === 0;
      if ((isShort || isUnused) && loan.whole < loan.told) this.#tell(to, loan, loan.whole);
    }
  }

  #share(loans: readonly Loan[]): void {
    const shares = loanShares(this.#o.limit, loans, this.#o.weightOf);
    const whole = wholeShares(
      shares,
      loans.map(({ credit }) => credit),
    );
    loans.forEach((loan, at) => {
      loan.share = shares[at] ?? 0;
      loan.whole = whole[at] ?? 0;
    });
  }

  #tell(to: LoanReceiver, loan: Loan, permits: number): void {
    loan.told = permits;
    loan.number = this.#o.nextNumber();
    to.send({ kind: 'loan', name: this.#o.name, permits, number: loan.number });
  }
}

function newLoan(): Loan {
  return {
    ...{ claims: [], most: Infinity },
    ...{ told: 0, lent: 0, number: 0, credit: 0, share: 0, whole: 0 },
  };
}
