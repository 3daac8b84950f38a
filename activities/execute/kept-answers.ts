import { crc32 } from 'node:zlib';
import { isNightshiftError } from '../../core/errors';
import { keepsAnswer, readFrame } from '../../core/journal/frame';
import type { FrameRef } from '../../storage/journal/journal-store';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import { endingFrame, type EncodedFrame } from './answer-frames';

/**
 * Reads the answers that the journal keeps for lines without another one (docs/design/journal.md#kept-answers).
 * Ask for them {@link byPlace in the order of their places}: then the store reads ahead.
 */
export class KeptAnswers {
  readonly #store: Pick<ObjectStore, 'open'>;
  /** Of the object that was read last. */
  #reader: { readonly key: string; readonly of: ObjectReader } | null = null;

  constructor(store: Pick<ObjectStore, 'open'>) {
    this.#store = store;
  }

  /**
   * The frame that ends the line with the kept answer; null if that is missing or damaged, so that the line gets an
   * error code. @throws object_store_failed
   */
  async frame({ objectKey, position, byteLength }: FrameRef): Promise<EncodedFrame | null> {
    try {
      const reader = await this.#open(objectKey);
      const bytes =
        reader.readNow?.(position, byteLength) ?? (await reader.read(position, byteLength));
      const frame = readFrame(bytes, 0, crc32);
      if (frame === null || !keepsAnswer(frame.header)) return null;
      return endingFrame(frame.header, bytes.subarray(frame.payloadStart, frame.end));
    } catch (error) {
      if (isNightshiftError(error, 'object_missing')) return null;
      throw error;
    }
  }

  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = null;
    await reader?.of.close();
  }

  async #open(key: string): Promise<ObjectReader> {
    if (this.#reader?.key === key) return this.#reader.of;
    await this.close();
    const of = await this.#store.open(key);
    this.#reader = { key, of };
    return of;
  }
}

/** Compares places for sorting: object by object, from the front. */
export function byPlace(a: FrameRef, b: FrameRef): number {
  if (a.objectKey !== b.objectKey) return a.objectKey < b.objectKey ? -1 : 1;
  return a.position - b.position;
}
