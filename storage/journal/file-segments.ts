import { randomBytes } from 'node:crypto';
import { segmentKey } from '../../core/names/object-names';
import type { SegmentFile } from './segment-file';
import type { SegmentScope, SegmentSink, WrittenPlace } from './segment-writer';

export interface FileSegmentsOptions extends SegmentScope {
  /** Creates the segment `key`; `onSyncError` abandons it. */
  readonly createSegment: (
    key: string,
    onSyncError: (error: unknown) => void,
  ) => Promise<SegmentFile>;
  readonly onAbandoned: (segment: string, error: unknown) => void;
}

/**
 * Segments that are files: frames are appended to one until an error, and then to a new one
 * (docs/design/journal.md#writing-and-durability). What an abandoned segment holds stays valid.
 */
export class FileSegments implements SegmentSink {
  readonly #options: FileSegmentsOptions;
  #segment: SegmentFile | null = null;

  constructor(options: FileSegmentsOptions) {
    this.#options = options;
  }

  async write(frames: readonly Uint8Array[]): Promise<WrittenPlace> {
    try {
      const segment = (this.#segment ??= await this.#createSegment());
      return { objectKey: segment.key, position: await segment.append(frames) };
    } catch (error) {
      this.#abandon(this.#segment, error);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#segment?.release();
    this.#segment = null;
  }

  #createSegment(): Promise<SegmentFile> {
    const { batchId, safeModel, range, createSegment } = this.#options;
    const key = segmentKey(batchId, safeModel, range, randomBytes(8).toString('hex'));
    return createSegment(key, (error) => {
      if (this.#segment?.key === key) this.#abandon(this.#segment, error);
    });
  }

  #abandon(segment: SegmentFile | null, error: unknown): void {
    this.#segment = null;
    this.#options.onAbandoned(segment?.key ?? 'none yet', error);
    void segment?.release();
  }
}
