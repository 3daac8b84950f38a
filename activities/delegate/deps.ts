import type { ConcurrencyLimit } from '../../core/async/concurrency-limit';
import type { Provider } from '../../providers/provider';
import type { ProviderConfig } from '../../platform/config-providers';
import type { Config } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import type { JournalStore } from '../../storage/journal/journal-store';
import type { ObjectStore } from '../../storage/object-store';
import type { BatchRow } from '../../storage/postgres/batches/types';
import type { ProgressReporter } from '../../storage/postgres/progress';
import type { ProviderJobs } from '../../storage/postgres/provider-jobs/repository';
import type { LineFiles } from './line-files';
import type { DelegateObserver } from './observer';

/** A provider of the configuration, opened. */
export interface OpenProvider {
  readonly name: string;
  readonly config: ProviderConfig;
  /** Fingerprint of the account. */
  readonly account: string;
  /** How long a late create may still take effect, ms. */
  readonly settleMs: number;
  /** Whether no other program creates jobs in the account. */
  readonly isExclusive: boolean;
  readonly api: Provider;
}

/** What the activities of delegation need of their process. */
export interface DelegateDeps {
  readonly store: ObjectStore;
  readonly journal: JournalStore;
  readonly progress: ProgressReporter;
  readonly jobs: ProviderJobs;
  readonly batches: { find(batchId: string): Promise<BatchRow | null> };
  /** Null if this process has no such provider. */
  provider(name: string): OpenProvider | null;
  readonly config: Pick<Config, 'delegates' | 'providers'>;
  readonly observer: DelegateObserver;
  readonly logger: Logger;
  /** Requests of local models that this process has ended so far. */
  readonly requestsEnded: () => number;
  /** Limits how many parts the process has in memory (docs/design/delegation.md#memory). */
  readonly parts: ConcurrencyLimit;
  /** Files that requests name. */
  readonly lineFiles: LineFiles;
  /** Aborts when the process shuts down. */
  readonly drain: AbortSignal;
}
