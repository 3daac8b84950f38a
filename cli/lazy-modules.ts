/* eslint-disable @typescript-eslint/no-require-imports -- in CommonJS this is the only typed and
   synchronous way to load a module when it is needed; the reason to do so is below. */
import type * as Api from '../api/main';
import type * as Connection from '../client/connection';
import type * as Maintenance from '../client/maintenance';
import type * as Namespace from '../client/namespace';
import type * as NamespaceCheck from '../client/namespace-check';
import type * as OpenHistories from '../client/open-histories';
import type * as Schedules from '../client/schedules';
import type * as Gateway from '../gateway/main';
import type * as Storage from '../storage/open-storage';
import type * as ProveStore from '../storage/prove-store';
import type * as ApiKeys from '../storage/postgres/api-keys';
import type * as Migrate from '../storage/postgres/migrate';
import type * as RestoredRows from '../storage/postgres/restored-rows';
import type * as StoreIdentity from '../storage/postgres/store-identity';
import type * as Restore from '../storage/restore';
import type * as Pool from '../storage/postgres/pool';
import type * as Worker from '../workers/start';
import type * as OpenProviders from '../workers/open-providers';
import type * as ReplayOpen from '../workers/replay-open';

/**
 * Modules that cost time and memory to load; the worker, for example, brings a native library and a
 * compiler. Each command loads only those that it uses, so that `--help` is fast and the supervisor of
 * `dev` stays small.
 */
export const lazy = {
  api: () => require('../api/main') as typeof Api,
  gateway: () => require('../gateway/main') as typeof Gateway,
  worker: () => require('../workers/start') as typeof Worker,
  connection: () => require('../client/connection') as typeof Connection,
  maintenance: () => require('../client/maintenance') as typeof Maintenance,
  namespace: () => require('../client/namespace') as typeof Namespace,
  namespaceCheck: () => require('../client/namespace-check') as typeof NamespaceCheck,
  openHistories: () => require('../client/open-histories') as typeof OpenHistories,
  openProviders: () => require('../workers/open-providers') as typeof OpenProviders,
  replayOpen: () => require('../workers/replay-open') as typeof ReplayOpen,
  schedules: () => require('../client/schedules') as typeof Schedules,
  storage: () => require('../storage/open-storage') as typeof Storage,
  proveStore: () => require('../storage/prove-store') as typeof ProveStore,
  apiKeys: () => require('../storage/postgres/api-keys') as typeof ApiKeys,
  migrate: () => require('../storage/postgres/migrate') as typeof Migrate,
  restoredRows: () => require('../storage/postgres/restored-rows') as typeof RestoredRows,
  storeIdentity: () => require('../storage/postgres/store-identity') as typeof StoreIdentity,
  restore: () => require('../storage/restore') as typeof Restore,
  pool: () => require('../storage/postgres/pool') as typeof Pool,
} as const;
