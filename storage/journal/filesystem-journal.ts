import { crc32 } from 'node:zlib';
import { NightshiftError } from '../../core/errors';
import { MAX_CHUNK_ENTRIES } from '../../core/chunks/chunk-size';
import {
  journalPrefix,
  parseSealKey,
  parseSegmentKey,
  sealsPrefix,
} from '../../core/names/object-names';
import type { Logger } from '../../platform/logger';
import { expectStore } from '../objects/filesystem-errors';
import { namesInKeyOrder } from '../objects/filesystem-list';
import { objectPath } from '../objects/filesystem-layout';
import type { ObjectStore } from '../object-store';
import { openAppendFile, type OpenAppendFile } from './append-file';
import { FilesystemWriter } from './filesystem-writer';
import type { Range } from '../../core/range';
import type {
  FrameRef,
  JournalObject,
  JournalScope,
  JournalStore,
  SealInfo,
} from './journal-store';

import { openAnswers } from './merge/open-answers';
import { readFrames } from './read-frames';
import { SegmentFile } from './segment-file';
import { SyncRounds } from './sync-rounds';
import { writeSeal } from './write-seal';

/** Power loss costs at most the answers of this time. More frequent syncs make each write wait for the disk. */
const SYNC_INTERVAL_MS = 2_000;
const PARALLEL_SYNCS = 4;

export interface FilesystemJournalOptions {
  /** Root folder of the filesystem store. */
  readonly path: string;
  /** The filesystem store of the same root. */
  readonly store: ObjectStore;
  readonly logger?: Pick<Logger, 'warn'>;
  /** Called for each failed write, which is retried in a new segment; must not throw. */
  readonly onFailure?: () => void;
  /** How segments are created; a test passes one that simulates a full disk. */
  readonly openFile?: OpenAppendFile;
}

/**
 * The journal in a folder of this host (docs/design/journal.md#writing-and-durability). Segments are
 * files that are appended to, everything else goes through the object store. The caller closes it after
 * its writers.
 */
export function createFilesystemJournal(
  options: FilesystemJournalOptions,
): JournalStore & { close(): Promise<void> } {
  const { path, store } = options;
  const rounds = new SyncRounds({ intervalMs: SYNC_INTERVAL_MS, parallel: PARALLEL_SYNCS });
  const openWriter = writerFactory(options, rounds);
  return {
    openWriter,
    scan: (scope, range, isWanted = () => true) => scan({ path, store, scope, range, isWanted }),
    writeSeal: (scope, range, frames) => writeSeal({ store, crc32, scope, range, frames }),
    listSeals: (batchId) => listSeals(store, batchId),
    openAnswers: (batchId, seals, check) => openAnswers({ store, batchId, seals, check }),
    close: () => rounds.runNow(),
  };
}

function writerFactory(options: FilesystemJournalOptions, rounds: SyncRounds) {
  const openFile = options.openFile ?? openAppendFile;
  return (scope: JournalScope, range: Range): FilesystemWriter => {
    checkRange(range);
    return new FilesystemWriter({
      scope,
      range,
      createSegment: async (key, onSyncError) => {
        // If the volume is unmounted, the folders would be created below the mount point.
        await expectStore(options.path);
        const file = await openFile(objectPath(options.path, key));
        return new SegmentFile(key, file, { rounds, onSyncError });
      },
      onAbandoned: (segment, error) => {
        options.onFailure?.();
        options.logger?.warn({ segment, err: error }, 'journal segment abandoned');
      },
    });
  };
}

function checkRange({ from, to }: Range): void {
  if (from >= 0 && to > from && to - from <= MAX_CHUNK_ENTRIES) return;
  const message = `expected 1 to ${MAX_CHUNK_ENTRIES} plan positions, got [${from}, ${to})`;
  throw new NightshiftError('internal', message);
}

interface ScanInput {
  readonly path: string;
  readonly store: ObjectStore;
  readonly scope: JournalScope;
  readonly range: Range;
  isWanted(object: JournalObject): boolean;
}

async function* scan(input: ScanInput): AsyncGenerator<FrameRef> {
  const { path, store, scope, range } = input;
  const { batchId, safeModel } = scope;
  const seals = `${sealsPrefix(batchId)}${safeModel}/`;
  for (const folder of [journalPrefix(batchId, safeModel), seals]) {
    for (const name of await namesInKeyOrder(path, folder)) {
      const object = parseObject(folder + name);
      if (object === null || !overlaps(object, range) || !input.isWanted(object)) continue;
      yield* readFrames(store, object.key, crc32);
    }
  }
}

function parseObject(key: string): JournalObject | null {
  const segment = parseSegmentKey(key);
  if (segment !== null) return { key, range: segment.range };
  const seal = parseSealKey(key);
  return seal && { key, range: seal.range };
}

/** Whether an object may hold positions of `range`; a rest object may hold any position. */
function overlaps({ range: own }: JournalObject, range: Range): boolean {
  return own === null || (own.from < range.to && own.to > range.from);
}

async function listSeals(store: ObjectStore, batchId: string): Promise<SealInfo[]> {
  const seals: SealInfo[] = [];
  for await (const { key, size } of store.list(sealsPrefix(batchId))) {
    const name = parseSealKey(key);
    if (name === null) continue;
    seals.push({ key, size, safeModel: name.safeModel, range: name.range });
  }
  return seals;
}
