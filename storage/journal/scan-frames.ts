import { crc32 } from 'node:zlib';
import { inOrderAhead } from '../../core/async/in-order-ahead';
import { MAX_CHUNK_ENTRIES } from '../../core/chunks/chunk-size';
import {
  journalPrefix,
  overlapKeys,
  parseSealKey,
  parseSegmentKey,
  restPrefix,
  sealsPrefix,
} from '../../core/names/object-names';
import type { Range } from '../../core/range';
import type { ObjectStore } from '../object-store';
import type { FrameRef, JournalObject, JournalScope } from './journal-store';
import { readFrames } from './read-frames';

/** The keys of a folder that are wanted: those between two keys, and those with a prefix that sorts behind them. */
export interface KeyPlace {
  readonly folder: string;
  readonly after: string;
  readonly before: string;
  readonly last?: string;
}

/** Keys of all places, in this order and in key order: at least those that are wanted. */
export type KeysIn = (places: readonly KeyPlace[]) => AsyncIterable<string>;

/** What {@link scanFrames} needs. */
export interface ScanInput {
  readonly store: ObjectStore;
  readonly scope: JournalScope;
  readonly range: Range;
  readonly isWanted: (object: JournalObject) => boolean;
  readonly keysIn: KeysIn;
  /** Objects that are read at the same time. */
  readonly parallel: number;
}

/**
 * The frames of all segments and seals of a model that overlap `range`, object by object in key order
 * (docs/design/journal.md#reading). @throws object_store_failed
 */
export async function* scanFrames(input: ScanInput): AsyncGenerator<FrameRef> {
  const { store, parallel } = input;
  if (parallel === 1) {
    for await (const key of overlappingKeys(input)) yield* readFrames(store, key, crc32);
    return;
  }
  const found = inOrderAhead(overlappingKeys(input), parallel, (key) => framesOf(store, key));
  for await (const frames of found) yield* frames;
}

async function framesOf(store: ObjectStore, key: string): Promise<FrameRef[]> {
  const frames: FrameRef[] = [];
  for await (const frame of readFrames(store, key, crc32)) frames.push(frame);
  return frames;
}

async function* overlappingKeys(input: ScanInput): AsyncGenerator<string> {
  const { range, keysIn, isWanted } = input;
  for await (const key of keysIn(placesOf(input))) {
    const object = parseObject(key);
    if (object !== null && overlaps(object, range) && isWanted(object)) yield key;
  }
}

function placesOf({ scope: { batchId, safeModel }, range }: ScanInput): KeyPlace[] {
  const place = (folder: string): KeyPlace => {
    return { folder, ...overlapKeys(folder, range, MAX_CHUNK_ENTRIES) };
  };
  const seals = place(`${sealsPrefix(batchId)}${safeModel}/`);
  return [
    place(journalPrefix(batchId, safeModel)),
    { ...seals, last: restPrefix(batchId, safeModel) },
  ];
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
