import { isOfBatch } from '../core/names/object-names';
import { presetEnvironment } from '../platform/config';
import type { Config } from '../platform/config-schema';
import type { Logger } from '../platform/logger';
import type { Tracing } from '../platform/tracing/tracing';
import { createFilesystemJournal } from './journal/filesystem-journal';
import type { OpenJournal } from './journal/journal';
import { createObjectJournal } from './journal/object-journal';
import type { ObjectStore } from './object-store';
import { openCachedStore } from './objects/cache/cached-store';
import { openFilesystemStore } from './objects/filesystem';
import type * as S3Store from './objects/s3/s3-store';
import { s3OptionsOf } from './objects/s3/s3-settings';
import { observeStore, type StoreObserver } from './objects/observed-store';
import { traceStore } from './objects/traced-store';

/** The object store of an installation, and the journal in it. */
export interface Storage {
  readonly store: ObjectStore;
  /** Costs nothing until a writer is opened or a segment is read. */
  readonly journal: OpenJournal;
  /** The same store for another observer. Close it only here. */
  observedBy(observe: StoreObserver): ObjectStore;
  /** The id that PostgreSQL must know (docs/design/read-model.md#store-identity). */
  readonly storeId: string;
  /** Closes the journal, then the store. Close all writers first. */
  close(): Promise<void>;
}

/** What {@link openStorage} needs beside the settings. */
export interface StorageOptions {
  readonly logger?: Pick<Logger, 'warn'>;
  /** Called with the outcome of each operation of the store and the journal; must not throw. */
  readonly observe?: StoreObserver;
  /** Called with the duration of each write of the journal, failed ones included; must not throw. */
  readonly onFlushed?: (tookMs: number) => void;
  /** Records operations of the store as spans; null or undefined for none. */
  readonly tracing?: Pick<Tracing, 'beginChild'> | null;
  /** Called with the size of each chunk once it is written or consumed. */
  readonly onPassed?: (bytes: number) => void;
}

/**
 * Opens the object store that `object_store` names. The only place that knows which kinds there are: API,
 * workers and command line all use it. The caller closes the result.
 * @throws config_invalid, object_store_failed
 */
export async function openStorage(
  settings: Config['object_store'],
  options: StorageOptions = {},
): Promise<Storage> {
  const { observe = () => undefined, tracing = null } = options;
  const plain = await openStore(settings, options);
  const observedBy = (observer: StoreObserver): ObjectStore =>
    traceStore(observeStore(plain, observer), tracing);
  const store = observedBy(observe);
  const journal = openJournal(settings, store, options);
  const close = async (): Promise<void> => {
    await journal.close();
    await store.close();
  };
  try {
    return { store, observedBy, journal, storeId: await store.storeId(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openStore(
  settings: Config['object_store'],
  options: StorageOptions,
): Promise<ObjectStore> {
  const { onPassed, logger } = options;
  if (settings.type === 'filesystem') {
    const { path } = settings;
    return openFilesystemStore({ path, ...(onPassed === undefined ? {} : { onPassed }) });
  }
  const { cache_bytes: bytes, cache_dir: folder } = settings;
  return openCachedStore(await openBucket(settings, options), {
    bytes,
    ...(folder === undefined ? {} : { folder }),
    ...(logger === undefined ? {} : { logger }),
    isLasting: isOfBatch,
  });
}

/**
 * AWS's SDK warns on stderr, once a process, that its later versions need a newer Node. Its version is ours to
 * choose, so the warning tells an operator nothing. The variable is the documented way to turn off this one.
 */
const SDK_NODE_WARNING_OFF = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

function openBucket(
  settings: Extract<Config['object_store'], { type: 's3' }>,
  { onPassed, observe }: StorageOptions,
): Promise<ObjectStore> {
  presetEnvironment(SDK_NODE_WARNING_OFF, 'true');
  // Loaded on demand, because AWS's SDK costs 0.2 s in every process that loads it.
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- typed, and works from source and built
  const { openS3Store } = require('./objects/s3/s3-store') as typeof S3Store;
  return openS3Store({
    ...s3OptionsOf(settings),
    ...(onPassed === undefined ? {} : { onPassed }),
    onRetry: (operation) => observe?.(operation, 'retry'),
  });
}

function openJournal(
  settings: Config['object_store'],
  store: ObjectStore,
  { logger, observe, onFlushed }: StorageOptions,
): OpenJournal {
  const shared = {
    store,
    ...(logger === undefined ? {} : { logger }),
    ...(onFlushed === undefined ? {} : { onFlushed }),
  };
  if (settings.type === 'filesystem') {
    const onFailure = (): void => observe?.('store', 'retry');
    return createFilesystemJournal({ ...shared, path: settings.path, onFailure });
  }
  // The store counts failed puts of segments, as of every other object.
  const { flush_interval: flushIntervalMs, segment_bytes: segmentBytes } = settings;
  return createObjectJournal({ ...shared, flushIntervalMs, segmentBytes });
}
