import type { ClaimsMessage, LimitClaims, LoanMessage } from './loan-messages';
import type { PermitSource, PermitSupply, PermitUser } from './permit-source';

/** How often a process that uses permits says what it has and wants, if that changed. */
const CLAIM_EVERY_MS = 25;
/** How long permits are kept that nobody uses: the next request of their model then waits for no message. */
const KEEP_UNUSED_MS = 1_000;

/**
 * The permits that this process has borrowed from limits that it shares with other processes. The
 * {@link LoanDesk} in their parent lends them (docs/design/permits.md#several-processes).
 *
 * Between two messages it gives out what it has without asking anybody. It says at once when a request begins to wait,
 * and when it gives permits back that were called in.
 */
export class BorrowedPermits implements PermitSource {
  readonly #send: (message: ClaimsMessage) => void;
  readonly #loans = new Map<string, Loan>();
  #lastSent = '[]';
  #soon: NodeJS.Immediate | null = null;
  #later: NodeJS.Timeout | null = null;

  /** @param send takes a message to the parent; the order of messages stays */
  constructor(send: (message: ClaimsMessage) => void) {
    this.#send = send;
  }

  open(name: string, limit: number, user: PermitUser): PermitSupply {
    const known = this.#loans.get(name);
    const loan = known ?? new Loan(name, limit, () => this.#claimSoon());
    loan.user = user;
    this.#loans.set(name, loan);
    return loan;
  }

  /** Obeys the parent. */
  onLoan({ name, permits, number }: LoanMessage): void {
    const loan = this.#loans.get(name);
    if (loan === undefined) return;
    const isMore = permits > loan.permits;
    loan.permits = permits;
    loan.seen = number;
    if (isMore) loan.user?.onMore();
    this.#claimSoon();
  }

  close(): void {
    if (this.#soon !== null) clearImmediate(this.#soon);
    if (this.#later !== null) clearTimeout(this.#later);
  }

  #claimSoon(): void {
    this.#soon ??= setImmediate(() => {
      this.#soon = null;
      this.#claim();
    });
  }

  #claim(): void {
    const nowMs = performance.now();
    const limits = [...this.#loans.values()].map((loan) => loan.describe(nowMs));
    const text = JSON.stringify(limits);
    if (text !== this.#lastSent) this.#send({ kind: 'claims', limits });
    this.#lastSent = text;
    for (const [name, loan] of this.#loans) if (loan.isOver(nowMs)) this.#loans.delete(name);
    const isQuiet = [...this.#loans.values()].every((loan) => loan.isQuiet);
    if (this.#later !== null || isQuiet) return;
    this.#later = setTimeout(() => {
      this.#later = null;
      this.#claim();
    }, CLAIM_EVERY_MS);
    this.#later.unref();
  }
}

/** The permits of one limit that were lent to this process. */
class Loan implements PermitSupply {
  permits = 0;
  seen = 0;
  /** Null while nothing uses the limit. */
  user: PermitUser | null = null;
  readonly #name: string;
  readonly #limit: number;
  readonly #claimSoon: () => void;
  /** Whether the parent knows that requests wait. */
  #saidWaits = false;
  #hasClaims = false;
  #unusedSinceMs = 0;

  constructor(name: string, limit: number, claimSoon: () => void) {
    this.#name = name;
    this.#limit = limit;
    this.#claimSoon = claimSoon;
  }

  onWait(): void {
    if (!this.#saidWaits) this.#claimSoon();
  }

  onFreed(held: number): void {
    if (held >= this.permits) this.#claimSoon();
  }

  close(): void {
    this.user = null;
    this.#unusedSinceMs = performance.now();
  }

  /** Whether what it says can change only by a call. */
  get isQuiet(): boolean {
    return this.user !== null && !this.#hasClaims;
  }

  /** Whether it was unused for so long that its permits go back, and they are back. */
  isOver(nowMs: number): boolean {
    return this.#isUnused(nowMs) && this.permits === 0;
  }

  describe(nowMs: number): LimitClaims {
    const { user } = this;
    const claims = user?.claims() ?? [];
    const most = this.#isUnused(nowMs) ? 0 : (user?.most ?? Infinity);
    this.#saidWaits = claims.some(({ waits }) => waits);
    this.#hasClaims = claims.length > 0;
    return {
      ...{ name: this.#name, limit: this.#limit, seen: this.seen, claims },
      kept: Math.max(this.permits, user?.held ?? 0),
      most: most === Infinity ? null : most,
    };
  }

  #isUnused(nowMs: number): boolean {
    return this.user === null && nowMs - this.#unusedSinceMs >= KEEP_UNUSED_MS;
  }
}
