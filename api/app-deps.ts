import type { ApiMetrics } from '../platform/api-metrics';
import type { Config } from '../platform/config-schema';
import type { HeaderVault } from '../platform/header-vault';
import type { Logger } from '../platform/logger';
import type { ReadinessCheck } from '../platform/readiness';
import type { ObjectStore } from '../storage/object-store';
import type { ApiKeyRepository } from '../storage/postgres/api-keys';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { FileRepository } from '../storage/postgres/files';
import type { UploadRepository } from '../storage/postgres/uploads';
import type { Outbox } from './outbox';

/** What the HTTP layer is made from; all of it is opened and closed by whoever builds the app. */
export interface AppDeps {
  readonly config: Pick<Config, 'api' | 'auth' | 'batch' | 'limits' | 'pass_through_headers'>;
  readonly files: FileRepository;
  readonly batches: BatchRepository;
  readonly uploads: UploadRepository;
  /** Asked in `auth.mode: api_key`. */
  readonly apiKeys: Pick<ApiKeyRepository, 'authenticate'>;
  readonly store: ObjectStore;
  readonly outbox: Outbox;
  readonly metrics: ApiMetrics;
  readonly logger: Logger;
  /** Encrypts what is passed through. */
  readonly vault: Pick<HeaderVault, 'seal'>;
  /** Asked by `/ready`, by name. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** Wall clock; a test sets its own. */
  readonly nowMs?: () => number;
  /** Longest file of an upload, 512 MB where left out (contract §1.2). */
  readonly maxUploadBytes?: number;
  /** Longest part of an upload in parts, 64 MB where left out (contract §1.7). */
  readonly maxPartBytes?: number;
}

/** {@link AppDeps} with everything filled in. */
export interface RouteDeps extends Required<AppDeps> {
  /** Wall clock in Unix seconds. */
  readonly nowSec: () => number;
}
