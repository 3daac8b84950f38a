import { crc32 } from 'node:zlib';
import { inOrderAhead } from '../../core/async/in-order-ahead';
import { MAX_CHUNK_ENTRIES } from '../../core/chunks/chunk-size';
import {
  journalPrefix,
  overlapPrefixes,
  parseSealKey,
  parseSegmentKey,
  restPrefix,
  sealsPrefix,
} from '../../core/names/object-names';
import type { Range } from '../../core/range';
import type { ObjectStore } from '../object-store';
import type { FrameRef, JournalObject, JournalScope } from './journal-store';
import { readFrames } from './read-frames';

/** A folder of keys, and the prefixes of those in it that are wanted. */
export interface KeyPlace {
  readonly folder: string;
  readonly prefixes: readonly string[];
}

/** Keys of all places, in this order and in key order: at least those with one of the prefixes. */
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
  const segments = journalPrefix(batchId, safeModel);
  const seals = `${sealsPrefix(batchId)}${safeModel}/`;
  const prefixes = overlapPrefixes(seals, range, MAX_CHUNK_ENTRIES);
  const rest = prefixes.includes(seals) ? [] : [restPrefix(batchId, safeModel)];
  return [
    { folder: segments, prefixes: overlapPrefixes(segments, range, MAX_CHUNK_ENTRIES) },
    { folder: seals, prefixes: [...prefixes, ...rest] },
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
