import type { CreateOutcome, IdempotentOutcome } from '../../core/delegation/call-outcome';

/** A call to a provider, as metrics and alerts name it. */
export type ProviderCall =
  'upload' | 'input' | 'find' | 'create' | 'status' | 'results' | 'cancel' | 'cleanup' | 'list';

/** Learns what happens to jobs, for metrics. Must not throw. */
export interface DelegateObserver {
  called(provider: string, call: ProviderCall, outcome: CreateOutcome | IdempotentOutcome): void;
  /** A look-up found a job whose create was not answered. */
  adopted(provider: string): void;
  /** Lines of a job that has been collected, by what they got. */
  collected(job: CollectedLines): void;
  /** A job that the provider may still run was given up, with all its lines. */
  abandoned(job: {
    readonly provider: string;
    readonly model: string;
    readonly lines: number;
  }): void;
  jobEnded(job: {
    readonly provider: string;
    readonly status: string;
    readonly tookMs: number;
  }): void;
}

/** Lines of a collected job. */
export interface CollectedLines {
  readonly provider: string;
  readonly model: string;
  readonly answered: number;
  readonly failed: number;
  readonly unanswered: number;
  readonly doubled: number;
  readonly foreign: number;
  /** In US dollars; null without a configured price. */
  readonly costUsd: number | null;
}
