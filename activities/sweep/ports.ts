import type { Config } from '../../platform/config-schema';
import type { ObjectStore } from '../../storage/object-store';
import type { SweepRows } from '../../storage/postgres/sweep';
import type { SweepKind, SweepPageInput, SweepPageResult } from './contract';

/** What the sweep reads, removes and reports. */
export interface SweepDeps {
  readonly rows: SweepRows;
  readonly store: Pick<ObjectStore, 'head' | 'list' | 'delete' | 'removeUnfinished'>;
  readonly retention: Pick<Config['retention'], 'batches' | 'scratch'>;
  readonly observer: SweepObserver;
}

/** Receives events of the sweep, for metrics. Must not throw. */
export interface SweepObserver {
  removed(kind: SweepKind, count: number): void;
  /** A search found a batch in the store without its row (docs/design/ends.md#lost-rows). */
  rowsLost(): void;
}

/** Sweeps one page of one kind. `check` throws when the activity is cancelled. */
export type Sweeper = (
  deps: SweepDeps,
  input: SweepPageInput,
  check: () => void,
) => Promise<SweepPageResult>;
