import { randomBytes } from 'node:crypto';
import { encodeObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import { numberedSegmentKey, segmentKey } from '../../core/names/object-names';
import type { ObjectStore } from '../object-store';
import type { SegmentScope, SegmentSink, WrittenPlace } from './segment-writer';

export interface ObjectSegmentsOptions extends SegmentScope {
  readonly store: Pick<ObjectStore, 'putIfAbsent' | 'read'>;
  /** Called for each put that failed; must not throw. */
  readonly onFailure: (segment: string, error: unknown) => void;
}

/**
 * Segments that are numbered immutable objects, one for each write
 * (docs/design/journal.md#segments-on-an-object-store).
 *
 * A put that failed may still have arrived, or may arrive later. So it is repeated under the same name and
 * with the same bytes until its outcome is known, and the name never stands for anything else.
 */
export class ObjectSegments implements SegmentSink {
  readonly #options: ObjectSegmentsOptions;
  readonly #name: string;
  #number = 1;

  constructor(options: ObjectSegmentsOptions) {
    this.#options = options;
    const { batchId, safeModel, range } = options;
    this.#name = segmentKey(batchId, safeModel, range, randomBytes(8).toString('hex'));
  }

  async write(frames: readonly Uint8Array[]): Promise<WrittenPlace> {
    const bytes = Buffer.concat([encodeObjectHeader(MAGIC.segment), ...frames]);
    for (;;) {
      const objectKey = numberedSegmentKey(this.#name, this.#number);
      const isOurs = await this.#put(objectKey, bytes);
      this.#number++;
      if (isOurs) return { objectKey, position: OBJECT_HEADER_BYTES };
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Returns whether the object now has these bytes. `exists` is nearly always our own earlier put whose
   * reply was lost, because the name has 64 random bits. The object is read all the same: a machine that was
   * copied while it ran gives two writers the same name, and an acknowledged frame must be in the store.
   */
  async #put(key: string, bytes: Buffer): Promise<boolean> {
    const { store, onFailure } = this.#options;
    try {
      if ((await store.putIfAbsent(key, bytes)) === 'created') return true;
      return bytes.equals(await store.read(key));
    } catch (error) {
      onFailure(key, error);
      throw error;
    }
  }
}
