import type { StopCause } from '../batch/status';
import { CREATABLE_STEPS, type JobStep } from './job-steps';

/** For each MiB of a body that the create call carries. */
const LEASE_MS_PER_MIB = 1_000;
const MIB = 1024 * 1024;
/** A create call needs at least this long to be worth sending. */
const LEAST_CALL_MS = 5_000;
/** How soon a job asks again if its account has no room, or its batch has no row. */
const ASK_AGAIN_MS = 30_000;
const OTHER_ACCOUNT_MS = 300_000;
/** For the next attempt at a job whose outcome is unknown to look it up, before another one of its size begins. */
const OWN_TURN_MS = 60_000;

/** Two clocks of a process: one that no person sets, and one that goes on while a machine is suspended. */
export interface Clocks {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** The lease of one attempt to create a job, as its process sees it. */
export interface CreateLease {
  /** Read before the statement that took the lease, so that it ends here before it ends in PostgreSQL. */
  readonly takenAt: Clocks;
  readonly lengthMs: number;
}

/**
 * Length of a lease, ms. `callsMs` is for the look-up and for a create call without a body; `inlineBytes` is 0 if the
 * call only names an uploaded file.
 */
export function leaseLengthMs(callsMs: number, inlineBytes: number): number {
  return callsMs + Math.ceil(inlineBytes / MIB) * LEASE_MS_PER_MIB;
}

/**
 * How long the attempt may still send, ms; 0 if its lease has ended. The clock that advanced more counts: a
 * monotonic clock may stand still while its machine is suspended, and a wall clock may be set back.
 */
export function leaseLeftMs({ takenAt, lengthMs }: CreateLease, now: Clocks): number {
  const passedMs = Math.max(now.monotonicMs - takenAt.monotonicMs, now.wallMs - takenAt.wallMs);
  return Math.max(0, lengthMs - passedMs);
}

/** Whether a create call may begin: what is left of the lease suffices for it. */
export function mayCall(lease: CreateLease, now: Clocks): boolean {
  return leaseLeftMs(lease, now) >= LEAST_CALL_MS;
}

/**
 * How long after the end of a lease no other attempt begins, ms. A request may take effect until `settleMs`
 * after its connection ended, and its job may be missing from lists for as long again.
 */
export function quietMs(settleMs: number): number {
  return 2 * settleMs;
}

/** What the rows say about a job when an attempt asks for its lease. */
export interface JobToLease {
  readonly step: JobStep;
  readonly externalId: string | null;
  readonly account: string;
  /** From now until the end of the latest lease, ms; negative if it has ended, null if there is none. */
  readonly leaseLeftMs: number | null;
  /** `missing` if the batch has no row, `ended` if its status is terminal. */
  readonly batch: 'open' | 'missing' | 'ended' | StopCause;
  /** From now until creates are possible after a restore of PostgreSQL, ms; at most 0 without one. */
  readonly heldMs: number;
  /** What is known of providers' jobs that may be this one; of use if only results prove a job. */
  readonly traces: JobTraces;
}

/** What may exist of a job that has no id yet (docs/design/provider-jobs.md#proof-by-results). */
export interface JobTraces {
  /** How many jobs of the provider may be this one. At 0 none of them is; null if that is not known. */
  readonly candidates: number | null;
  /** Whether a create may have been sent, as far as the rows tell, or they were restored. */
  readonly mayBeSent: boolean;
  /** From now until the end of the latest lease of another job with as many lines, ms; null if there is none. */
  readonly sameSizeLeaseLeftMs: number | null;
}

/** Why an attempt has to wait. */
export type LeaseWait =
  | 'earlier_attempt'
  | 'restored'
  | 'no_room'
  | 'no_batch'
  | 'other_account'
  /** Candidates have to be proven by their results before anything is created. */
  | 'candidates'
  /** A job with as many lines may appear in the list of this account. */
  | 'same_size';

/** Whether an attempt may look for its job and create it, and otherwise how the job stands. */
export type LeaseVerdict =
  /** `lookUp` is false if no job can exist, and a look-up could only find those of others. */
  | { readonly kind: 'granted'; readonly lookUp: boolean }
  | { readonly kind: 'exists'; readonly externalId: string; readonly step: JobStep }
  /** The job is refused or given up: it must not be created any more. */
  | { readonly kind: 'settled'; readonly step: JobStep }
  | { readonly kind: 'stopped'; readonly cause: StopCause | 'ended' }
  | { readonly kind: 'wait'; readonly reason: LeaseWait; readonly afterMs: number };

/**
 * Decides whether an attempt gets the lease of a job. It runs inside the transaction that takes the lease,
 * with the job's row locked (docs/design/provider-jobs.md#the-lease).
 *
 * @param hasRoom whether the account's quota admits this job now; asked only if nothing else is in the way
 */
export async function leaseVerdict(
  job: JobToLease,
  settings: {
    readonly account: string;
    readonly settleMs: number;
    readonly isProvenByResults: boolean;
  },
  hasRoom: () => Promise<boolean>,
): Promise<LeaseVerdict> {
  if (job.externalId !== null)
    return { kind: 'exists', externalId: job.externalId, step: job.step };
  if (!isCreatable(job.step)) return { kind: 'settled', step: job.step };
  if (job.batch === 'missing') return wait('no_batch', ASK_AGAIN_MS);
  if (job.batch !== 'open') return { kind: 'stopped', cause: job.batch };
  // A look-up at another account cannot find the job.
  if (job.account !== settings.account) return wait('other_account', OTHER_ACCOUNT_MS);
  const quietLeftMs = (job.leaseLeftMs ?? -Infinity) + quietMs(settings.settleMs);
  if (quietLeftMs > 0) return wait('earlier_attempt', quietLeftMs);
  if (job.heldMs > 0) return wait('restored', job.heldMs);
  const proofWait = settings.isProvenByResults ? waitForProof(job.traces, settings.settleMs) : null;
  if (proofWait !== null) return proofWait;
  if (!(await hasRoom())) return wait('no_room', ASK_AGAIN_MS);
  return { kind: 'granted', lookUp: !settings.isProvenByResults || mayExist(job.traces) };
}

/** Of jobs with equally many lines, one at a time may be missing from the list, or each could be the other. */
function waitForProof(traces: JobTraces, settleMs: number): LeaseVerdict | null {
  if ((traces.candidates ?? 0) > 0) return wait('candidates', ASK_AGAIN_MS);
  const leftMs = (traces.sameSizeLeaseLeftMs ?? -Infinity) + quietMs(settleMs) + OWN_TURN_MS;
  return leftMs > 0 ? wait('same_size', Math.min(leftMs, ASK_AGAIN_MS)) : null;
}

/** No look-up without need: each foreign job with as many lines that it finds would have to end first. */
function mayExist({ candidates, mayBeSent }: JobTraces): boolean {
  return candidates === null && mayBeSent;
}

function wait(reason: LeaseWait, afterMs: number): LeaseVerdict {
  return { kind: 'wait', reason, afterMs };
}

function isCreatable(step: JobStep): boolean {
  return (CREATABLE_STEPS as readonly JobStep[]).includes(step);
}
