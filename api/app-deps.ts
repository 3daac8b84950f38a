import type { LineIndex } from '../core/openai/line-index';
import type { ApiMetrics } from '../platform/api-metrics';
import type { Config } from '../platform/config-schema';
import type { HeaderVault } from '../platform/header-vault';
import type { Logger } from '../platform/logger';
import type { ReadinessCheck } from '../platform/readiness';
import type { Tracing } from '../platform/tracing/tracing';
import type { ObjectStore } from '../storage/object-store';
import type { ApiKeyRepository } from '../storage/postgres/api-keys';
import type { BatchRepository } from '../storage/postgres/batches/repository';
import type { FileRepository } from '../storage/postgres/files';
import type { ProviderJobs } from '../storage/postgres/provider-jobs/repository';
import type { UploadRepository } from '../storage/postgres/uploads';
import type { Outbox } from './outbox';
import type { FileIndexing } from './uploads/file-indexing';

/** Settings and dependencies of the API. The caller of `buildApp` opens and closes them. */
export interface AppDeps {
  readonly config: Pick<
    Config,
    'api' | 'auth' | 'batch' | 'limits' | 'pass_through_headers' | 'providers'
  >;
  readonly files: FileRepository;
  readonly batches: BatchRepository;
  readonly uploads: UploadRepository;
  /** Jobs of batches at providers. */
  readonly jobs: Pick<ProviderJobs, 'ofBatch'>;
  /** Used with `auth.mode: api_key`. */
  readonly apiKeys: Pick<ApiKeyRepository, 'authenticate'>;
  readonly store: ObjectStore;
  readonly outbox: Outbox;
  readonly metrics: ApiMetrics;
  readonly logger: Logger;
  /** Encrypts pass-through headers. */
  readonly vault: Pick<HeaderVault, 'seal'>;
  /** The checks of `/ready`, by name. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** Records the spans of requests; null or undefined for none. */
  readonly tracing?: Pick<Tracing, 'beginRequest'> | null;
  /** Reads input files as they are uploaded. Null or undefined: they get no index. */
  readonly lineIndex?: LineIndex | null;
  /** Wall clock. */
  readonly nowMs?: () => number;
  /** Largest file of one request. Default 512 MB (docs/design/api-contract.md#file-size). */
  readonly maxUploadBytes?: number;
  /** Largest part of an upload. Default 64 MB (docs/design/api-contract.md#upload-parts). */
  readonly maxPartBytes?: number;
}

/** {@link AppDeps} with all defaults applied. */
export interface RouteDeps extends Required<AppDeps> {
  /** Wall clock in Unix seconds. */
  readonly nowSec: () => number;
  readonly indexing: FileIndexing;
}
