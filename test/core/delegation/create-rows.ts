import type { CreateAction, CreateEvent } from '../../../core/delegation/create-attempt';
import { leaseVerdict } from '../../../core/delegation/create-lease';
import type { JobStep } from '../../../core/delegation/job-steps';
import type { Story } from './create-world';

export const LEASE_MS = 90_000;
export const SETTLE_MS = 30_000;
const HELD_MS = 600_000;
const CLOCK_SKEW_MS = 600_000;
const ACCOUNT = 'account';

/** The columns of the row that the protocol reads. */
export interface Row {
  readonly step: JobStep;
  readonly externalId: string | null;
  readonly token: number | null;
  readonly creatingUntilMs: number | null;
  readonly capacityRefusals: number;
  readonly candidates: readonly string[] | null;
  readonly mayExistSinceMs: number | null;
}

const NEW_ROW: Row = {
  ...{ step: 'uploaded', externalId: null, token: null, creatingUntilMs: null },
  ...{ capacityRefusals: 0, candidates: null, mayExistSinceMs: null },
};

type GiveBack = Extract<CreateAction, { do: 'give_back' }>;

interface LeasingProcess {
  readonly token: number;
  searchFromMs: number;
}

/** PostgreSQL in a story: the row of the job, and the statements of the protocol. */
export class CreateRows {
  readonly #story: Pick<Story, 'stopAtMs' | 'recognisedBy'>;
  readonly #world: { nowMs(): number; note(text: string): void };
  readonly #history: { atMs: number; row: Row }[] = [{ atMs: 0, row: NEW_ROW }];
  #heldUntilMs = 0;
  #isRestored = false;

  constructor(
    story: Pick<Story, 'stopAtMs' | 'recognisedBy'>,
    world: { nowMs(): number; note(text: string): void },
  ) {
    this.#story = story;
    this.#world = world;
  }

  /** The row as it is. */
  get row(): Row {
    return this.#history.at(-1)?.row ?? NEW_ROW;
  }

  #write(change: Partial<Row>): void {
    this.#history.push({ atMs: this.#world.nowMs(), row: { ...this.row, ...change } });
  }

  /** What look-ups have shown is not restored. */
  restore(toMs: number): void {
    const then = this.#history.filter(({ atMs }) => atMs <= toMs).at(-1)?.row ?? NEW_ROW;
    this.#world.note(`PostgreSQL is restored to ${toMs}`);
    const candidates = null;
    this.#history.push({ atMs: this.#world.nowMs(), row: { ...then, candidates } });
    this.#heldUntilMs = this.#world.nowMs() + HELD_MS;
    this.#isRestored = true;
  }

  /** Tells the process how far back its look-up goes. */
  async takeLease(process: LeasingProcess): Promise<CreateEvent> {
    const { token } = process;
    const { step, externalId, creatingUntilMs, capacityRefusals, candidates } = this.row;
    const { stopAtMs } = this.#story;
    const mayExistSinceMs = this.#isRestored ? 0 : this.row.mayExistSinceMs;
    process.searchFromMs = (mayExistSinceMs ?? 0) - CLOCK_SKEW_MS;
    const answer = await leaseVerdict(
      {
        ...{ step, externalId, account: ACCOUNT },
        leaseLeftMs: creatingUntilMs === null ? null : creatingUntilMs - this.#world.nowMs(),
        batch: stopAtMs !== null && this.#world.nowMs() >= stopAtMs ? 'cancelled' : 'open',
        heldMs: this.#heldUntilMs - this.#world.nowMs(),
        traces: {
          candidates: candidates?.length ?? null,
          mayBeSent: mayExistSinceMs !== null,
          sameSizeLeaseLeftMs: null,
        },
      },
      {
        account: ACCOUNT,
        settleMs: SETTLE_MS,
        isProvenByResults: this.#story.recognisedBy === 'results',
      },
      () => Promise.resolve(true),
    );
    this.#world.note(`attempt ${token} asks for the lease: ${JSON.stringify(answer)}`);
    if (answer.kind === 'granted') {
      const since = candidates?.length === 0 ? null : this.row.mayExistSinceMs;
      const lease = { token, creatingUntilMs: this.#world.nowMs() + LEASE_MS, candidates: null };
      this.#write({ step: 'creating', ...lease, mayExistSinceMs: since ?? this.#world.nowMs() });
    }
    return { of: 'take_lease', answer, capacityRefusals };
  }

  giveBack(token: number, { noCapacity, isAbsent }: GiveBack): CreateEvent {
    const { externalId, token: holder, capacityRefusals } = this.row;
    if (holder === token && externalId === null) {
      const refusals = noCapacity ? capacityRefusals + 1 : 0;
      const candidates = isAbsent && this.#isLeased ? [] : this.row.candidates;
      const lease = { token: null, creatingUntilMs: null, capacityRefusals: refusals };
      this.#write({ ...lease, candidates });
    }
    return { of: 'give_back' };
  }

  get #isLeased(): boolean {
    return (this.row.creatingUntilMs ?? 0) > this.#world.nowMs();
  }

  /** Counts only while the attempt holds the lease. */
  noteCandidates(token: number, found: readonly string[]): CreateEvent {
    const { token: holder, externalId } = this.row;
    const isHeld = holder === token && externalId === null && this.#isLeased;
    this.#world.note(`attempt ${token} notes candidates: ${isHeld ? found.join() : 'in vain'}`);
    if (isHeld) this.#write({ candidates: found });
    return { of: 'note_candidates', left: isHeld ? found.length : null };
  }

  /** The candidate is another job. */
  refute(id: string): void {
    const { candidates } = this.row;
    if (candidates === null) return;
    this.#world.note(`${id} is not the job`);
    this.#write({ candidates: candidates.filter((one) => one !== id) });
  }

  refuse(token: number): CreateEvent {
    const { externalId, token: holder, step } = this.row;
    const isHeld = holder === token && this.#isLeased;
    const done = isHeld && externalId === null && step === 'creating';
    if (done) this.#write({ step: 'refused', token: null, creatingUntilMs: null });
    return { of: 'refuse', done };
  }

  record(externalId: string): CreateEvent {
    if (this.row.externalId === null)
      this.#write({
        ...{ externalId, step: 'submitted', token: null, creatingUntilMs: null },
        candidates: null,
      });
    return {
      of: 'record',
      result: { kind: 'recorded', externalId: this.row.externalId ?? externalId },
    };
  }
}
