import type { Logger } from '../../platform/logger';
import type { ObjectStore } from '../object-store';
import { expectStore } from '../objects/filesystem-errors';
import { objectPath } from '../objects/filesystem-layout';
import { namesInKeyOrder } from '../objects/filesystem-list';
import { openAppendFile, type OpenAppendFile } from './append-file';
import { FileSegments } from './file-segments';
import { createJournal, type OpenJournal } from './journal';
import type { KeyPlace } from './scan-frames';
import { SegmentFile } from './segment-file';
import { SyncRounds } from './sync-rounds';

/** Power loss costs at most the answers of this time. More frequent syncs make each write wait for the disk. */
const SYNC_INTERVAL_MS = 2_000;
const PARALLEL_SYNCS = 4;
/** A kill -9 loses at most the frames appended in this time (measured: 49 ms at 500 lines a second). */
const WRITE_INTERVAL_MS = 50;
/** A write of this size does not wait for the interval; larger writes are no faster (measured). */
const WRITE_SOON_BYTES = 256 * 1024;
const POLICY = {
  intervalMs: WRITE_INTERVAL_MS,
  soonBytes: WRITE_SOON_BYTES,
  maxBytes: Number.POSITIVE_INFINITY,
};

export interface FilesystemJournalOptions {
  /** Root folder of the filesystem store. */
  readonly path: string;
  /** The filesystem store of the same root. */
  readonly store: ObjectStore;
  readonly logger?: Pick<Logger, 'warn'>;
  /** Called for each failed write, which is retried in a new segment; must not throw. */
  readonly onFailure?: () => void;
  /** Called with the duration of each write, ms, failed ones included; must not throw. */
  readonly onFlushed?: (tookMs: number) => void;
  /** How segments are created; a test passes one that simulates a full disk. */
  readonly openFile?: OpenAppendFile;
}

/**
 * The journal in a folder of this host (docs/design/journal.md#writing-and-durability). Segments are
 * files that are appended to, everything else goes through the object store. The caller closes it after
 * its writers.
 */
export function createFilesystemJournal(options: FilesystemJournalOptions): OpenJournal {
  const { path, store, openFile = openAppendFile } = options;
  const rounds = new SyncRounds({ intervalMs: SYNC_INTERVAL_MS, parallel: PARALLEL_SYNCS });
  return createJournal({
    store,
    policy: POLICY,
    onFlushed: options.onFlushed,
    openSegments: (scope) =>
      new FileSegments({
        ...scope,
        createSegment: async (key, onSyncError) => {
          // If the volume is unmounted, the folders would be created below the mount point.
          await expectStore(path);
          const file = await openFile(objectPath(path, key));
          return new SegmentFile(key, file, { rounds, onSyncError });
        },
        onAbandoned: (segment, error) => {
          options.onFailure?.();
          options.logger?.warn({ segment, err: error }, 'journal segment abandoned');
        },
      }),
    // Names alone: sizes would cost a system call for each object.
    keysIn: (places) => keysInFolders(path, places),
    parallelReads: 1,
    close: () => rounds.runNow(),
  });
}

async function* keysInFolders(path: string, places: readonly KeyPlace[]): AsyncGenerator<string> {
  for (const { folder } of places) {
    for (const name of await namesInKeyOrder(path, folder)) yield folder + name;
  }
}
