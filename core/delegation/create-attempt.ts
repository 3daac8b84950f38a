import type { StopCause } from '../batch/status';
import type { CreateOutcome, IdempotentOutcome } from './call-outcome';
import {
  type Clocks,
  type CreateLease,
  leaseLeftMs,
  type LeaseVerdict,
  type LeaseWait,
  mayCall,
  quietMs,
} from './create-lease';
import { capacityDelayMs } from './intervals';
import type { JobStep } from './job-steps';

const SOON_MS = 5_000;
const AUTH_MS = 300_000;
const FOREIGN_MS = 600_000;
/** Clocks differ by a little, and an attempt that comes too early is sent away again. */
const MARGIN_MS = 1_000;

/** What an attempt does next. Each is answered by the event of the same name. */
export type CreateAction =
  | { readonly do: 'take_lease' }
  | { readonly do: 'look_up' }
  /** Of the jobs that a look-up has found, those that no row owns have to be proven by their results. */
  | { readonly do: 'note_candidates'; readonly externalIds: readonly string[] }
  /** One request, within what {@link CreateAttempt.leftMs} says when it begins. */
  | { readonly do: 'create' }
  | { readonly do: 'record'; readonly externalId: string; readonly adopted: boolean }
  | {
      readonly do: 'give_back';
      readonly noCapacity: boolean;
      /** Whether this attempt is certain that the job does not exist. */
      readonly isAbsent: boolean;
      readonly end: CreateEnd & { afterMs: number };
    }
  | { readonly do: 'refuse' }
  | { readonly do: 'end'; readonly end: CreateEnd };

/** What became of an action. */
export type CreateEvent =
  | {
      readonly of: 'take_lease';
      readonly answer: LeaseVerdict | { readonly kind: 'no_row' };
      /** How often in a row the provider had no capacity for the job. */
      readonly capacityRefusals: number;
    }
  | { readonly of: 'look_up'; readonly found: LookUp }
  /** How many are left to prove; null if the lease was lost meanwhile. */
  | { readonly of: 'note_candidates'; readonly left: number | null }
  | {
      readonly of: 'create';
      readonly outcome: Exclude<CreateOutcome, 'accepted'>;
      readonly retryAfterMs: number | null;
    }
  | { readonly of: 'create'; readonly outcome: 'accepted'; readonly externalId: string }
  | { readonly of: 'record'; readonly result: RecordResult }
  | { readonly of: 'give_back' }
  /** `false` if another attempt holds the lease, or the job is known. */
  | { readonly of: 'refuse'; readonly done: boolean };

/** What a look-up found. */
export type LookUp =
  | { readonly kind: 'none' }
  | { readonly kind: 'job'; readonly externalId: string }
  | { readonly kind: 'candidates'; readonly externalIds: readonly string[] }
  | {
      readonly kind: 'failed';
      readonly outcome: Exclude<IdempotentOutcome, 'ok'>;
      readonly retryAfterMs: number | null;
    };

/** What became of a record; `unavailable` if PostgreSQL did not answer. */
export type RecordResult =
  | { readonly kind: 'recorded'; readonly externalId: string }
  | { readonly kind: 'owned_by_other' | 'no_row' | 'unavailable' };

/** Why an attempt ended without a result. */
export type RetryReason =
  | LeaseWait
  | Exclude<CreateOutcome, 'accepted' | 'refused'>
  | 'look_up_failed'
  | 'lease_lost'
  | 'no_time'
  /** The provider's id belongs to another row; an operator has to look. */
  | 'foreign_job';

/** How an attempt ended. */
export type CreateEnd =
  | {
      readonly kind: 'created';
      readonly externalId: string;
      /** A second job that this attempt has created although the row had one; must be cancelled. */
      readonly surplusId: string | null;
    }
  | { readonly kind: 'refused' }
  | { readonly kind: 'settled'; readonly step: JobStep }
  | { readonly kind: 'stopped'; readonly cause: StopCause | 'ended' }
  | { readonly kind: 'no_row' }
  | { readonly kind: 'retry'; readonly reason: RetryReason; readonly afterMs: number };

/**
 * One attempt to create a job, without I/O: it says what to do next, and is told what became of it
 * (docs/design/provider-jobs.md#one-attempt). The caller starts the clocks before the first action, does one
 * action at a time, and asks {@link leftMs} before the first byte and each piece of a create call.
 */
export class CreateAttempt {
  readonly #lease: CreateLease;
  readonly #settleMs: number;
  #action: CreateAction = { do: 'take_lease' };
  #capacityRefusals = 0;
  #isAbsent = false;

  constructor(lease: CreateLease, settleMs: number) {
    this.#lease = lease;
    this.#settleMs = settleMs;
  }

  /** The action to do now. */
  get action(): CreateAction {
    return this.#action;
  }

  /** How long the create call may still take and send, ms; at 0 nothing may leave. */
  leftMs(now: Clocks): number {
    return leaseLeftMs(this.#lease, now);
  }

  /** Takes in what became of the action, and returns the next one. */
  next(event: CreateEvent, now: Clocks): CreateAction {
    if (event.of !== this.#action.do)
      throw new Error(`the event ${event.of} does not belong to the action ${this.#action.do}`);
    this.#action = this.#after(event, now);
    return this.#action;
  }

  #after(event: CreateEvent, now: Clocks): CreateAction {
    switch (event.of) {
      case 'take_lease':
        this.#capacityRefusals = event.capacityRefusals;
        return this.#afterLease(event.answer, now);
      case 'look_up':
        return this.#afterLookUp(event.found, now);
      case 'note_candidates':
        if (event.left === null) return retry('lease_lost', SOON_MS);
        return event.left === 0 ? this.#absent(now) : this.#giveBack('candidates', SOON_MS);
      case 'create':
        return event.outcome === 'accepted'
          ? { do: 'record', externalId: event.externalId, adopted: false }
          : this.#afterNoAnswer(event.outcome, event.retryAfterMs, now);
      case 'record':
        return this.#afterRecord(event.result);
      case 'give_back':
        return this.#action.do === 'give_back'
          ? { do: 'end', end: this.#action.end }
          : this.#action;
      case 'refuse':
        return event.done ? { do: 'end', end: { kind: 'refused' } } : retry('lease_lost', SOON_MS);
    }
  }

  #afterLookUp(found: LookUp, now: Clocks): CreateAction {
    switch (found.kind) {
      case 'job':
        return { do: 'record', externalId: found.externalId, adopted: true };
      case 'candidates':
        return { do: 'note_candidates', externalIds: found.externalIds };
      case 'failed':
        return this.#afterFailedLookUp(found.outcome, found.retryAfterMs);
      case 'none':
        return this.#absent(now);
    }
  }

  #absent(now: Clocks): CreateAction {
    this.#isAbsent = true;
    return mayCall(this.#lease, now) ? { do: 'create' } : this.#giveBack('no_time', SOON_MS);
  }

  /** Nothing was created, and nothing may be: the job may be there. */
  #afterFailedLookUp(
    outcome: Exclude<IdempotentOutcome, 'ok'>,
    retryAfterMs: number | null,
  ): CreateAction {
    if (outcome === 'capacity') return this.#withoutCapacity('look_up_failed', retryAfterMs);
    const mayHelpSoon = outcome === 'transient';
    return this.#giveBack('look_up_failed', mayHelpSoon ? (retryAfterMs ?? SOON_MS) : AUTH_MS);
  }

  #afterNoAnswer(
    outcome: Exclude<CreateOutcome, 'accepted'>,
    retryAfterMs: number | null,
    now: Clocks,
  ): CreateAction {
    switch (outcome) {
      case 'not_sent':
        return this.#giveBack('not_sent', SOON_MS);
      case 'capacity':
        return this.#withoutCapacity('capacity', retryAfterMs);
      case 'auth':
        return this.#giveBack('auth', AUTH_MS);
      case 'refused':
        return { do: 'refuse' };
      case 'ambiguous':
        // The lease stays: until it has ended and settled, no look-up can tell whether the job exists.
        return retry('ambiguous', this.leftMs(now) + quietMs(this.#settleMs) + MARGIN_MS);
    }
  }

  #afterRecord(result: RecordResult): CreateAction {
    const { action } = this;
    if (action.do !== 'record') return action;
    switch (result.kind) {
      case 'recorded': {
        const { externalId } = result;
        const surplusId = externalId === action.externalId ? null : action.externalId;
        return { do: 'end', end: { kind: 'created', externalId, surplusId } };
      }
      case 'owned_by_other':
        return retry('foreign_job', FOREIGN_MS);
      case 'no_row':
        return { do: 'end', end: { kind: 'no_row' } };
      case 'unavailable':
        return action;
    }
  }

  #withoutCapacity(reason: RetryReason, retryAfterMs: number | null): CreateAction {
    const afterMs = capacityDelayMs(this.#capacityRefusals + 1, retryAfterMs);
    return { ...this.#giveBack(reason, afterMs), noCapacity: true };
  }

  #afterLease(answer: LeaseVerdict | { readonly kind: 'no_row' }, now: Clocks): CreateAction {
    switch (answer.kind) {
      case 'granted':
        return answer.lookUp ? { do: 'look_up' } : this.#absent(now);
      case 'exists':
        return {
          do: 'end',
          end: { kind: 'created', externalId: answer.externalId, surplusId: null },
        };
      case 'wait':
        return retry(answer.reason, answer.afterMs + MARGIN_MS);
      case 'settled':
      case 'stopped':
      case 'no_row':
        return { do: 'end', end: answer };
    }
  }

  #giveBack(reason: RetryReason, afterMs: number): GiveBack {
    const end = { kind: 'retry', reason, afterMs } as const;
    return { do: 'give_back', noCapacity: false, isAbsent: this.#isAbsent, end };
  }
}

type GiveBack = Extract<CreateAction, { do: 'give_back' }>;

function retry(reason: RetryReason, afterMs: number): CreateAction {
  return { do: 'end', end: { kind: 'retry', reason, afterMs } };
}
