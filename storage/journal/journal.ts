import { crc32 } from 'node:zlib';
import { MAX_CHUNK_ENTRIES } from '../../core/chunks/chunk-size';
import { NightshiftError } from '../../core/errors';
import { parseSealKey, sealsPrefix } from '../../core/names/object-names';
import type { Range } from '../../core/range';
import type { ObjectStore } from '../object-store';
import type { JournalStore, SealInfo } from './journal-store';
import { KeptProgram } from './merge/kept-program';
import { openAnswers } from './merge/open-answers';
import { scanFrames, type KeysIn } from './scan-frames';
import {
  SegmentWriter,
  type SegmentScope,
  type SegmentSink,
  type WritePolicy,
} from './segment-writer';
import { timedSegments } from './timed-segments';
import { writeSeal } from './write-seal';

/** A journal that its process closes after all writers. */
export type OpenJournal = JournalStore & { close(): Promise<void> };

/** What differs between journals: how segments are written and found. */
export interface JournalParts {
  readonly store: ObjectStore;
  readonly policy: WritePolicy;
  openSegments(scope: SegmentScope): SegmentSink;
  readonly keysIn: KeysIn;
  /** Segments and seals that a scan reads at the same time. */
  readonly parallelReads: number;
  /** Called with the duration of each write of a segment, ms, failed ones included; must not throw. */
  readonly onFlushed?: ((tookMs: number) => void) | undefined;
  close(): Promise<void>;
}

/** A journal whose seals and reads go through the object store. */
export function createJournal(parts: JournalParts): OpenJournal {
  const { store, policy, keysIn, parallelReads } = parts;
  const programs = new KeptProgram();
  return {
    openWriter: (scope, range) => {
      checkRange(range);
      const segments = parts.openSegments({ ...scope, range });
      return new SegmentWriter(timedSegments(segments, parts.onFlushed ?? NOTHING), policy);
    },
    scan: (scope, range, isWanted = () => true) =>
      scanFrames({ store, scope, range, isWanted, keysIn, parallel: parallelReads }),
    writeSeal: (scope, range, frames) => writeSeal({ store, crc32, scope, range, frames }),
    listSeals: (batchId) => listSeals(store, batchId),
    openAnswers: (batchId, seals, check) => openAnswers({ store, batchId, seals, programs, check }),
    close: () => parts.close(),
  };
}

const NOTHING = (): void => undefined;

function checkRange({ from, to }: Range): void {
  if (from >= 0 && to > from && to - from <= MAX_CHUNK_ENTRIES) return;
  const message = `expected 1 to ${MAX_CHUNK_ENTRIES} plan positions, got [${from}, ${to})`;
  throw new NightshiftError('internal', message);
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
