import { encodeObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import type { AppendFile } from './append-file';
import type { Syncable, SyncRounds } from './sync-rounds';

/**
 * One segment on a filesystem. One writer appends to it, and the sync rounds of the process sync it. It is
 * closed when the writer has released it and it is synced. After an error the writer abandons it, and its
 * frames stay readable. A segment in which no write succeeded is removed, because a full disk would
 * otherwise add one with every retry.
 */
export class SegmentFile implements Syncable {
  readonly key: string;
  readonly #file: AppendFile;
  readonly #rounds: SyncRounds;
  readonly #onSyncError: (error: unknown) => void;
  #size = 0;
  #isDirty = false;
  #isSyncing = false;
  #isReleased = false;
  #tookFrames = false;

  constructor(
    key: string,
    file: AppendFile,
    options: { rounds: SyncRounds; onSyncError: (error: unknown) => void },
  ) {
    this.key = key;
    this.#file = file;
    this.#rounds = options.rounds;
    this.#onSyncError = options.onSyncError;
  }

  /**
   * Appends `frames`, the first time after the object header, and returns the position of the first
   * frame. Throws if not every byte was written; then the segment must not be used again.
   */
  async append(frames: readonly Uint8Array[]): Promise<number> {
    const isNew = this.#size === 0;
    const bytes = Buffer.concat(isNew ? [encodeObjectHeader(MAGIC.segment), ...frames] : frames);
    const taken = await this.#file.append(bytes);
    const position = isNew ? OBJECT_HEADER_BYTES : this.#size;
    this.#size += taken;
    this.#isDirty = true;
    this.#rounds.mark(this);
    if (taken < bytes.length) throw new Error(`short write: ${taken} of ${bytes.length} bytes`);
    this.#tookFrames = true;
    return position;
  }

  async sync(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#isSyncing = true;
    await this.#file.sync().catch(this.#onSyncError);
    this.#isSyncing = false;
    await this.#closeWhenDone();
  }

  /** Called once, after the last write. */
  async release(): Promise<void> {
    this.#isReleased = true;
    await this.#closeWhenDone();
  }

  async #closeWhenDone(): Promise<void> {
    const needsSync = this.#isDirty && this.#tookFrames;
    if (!this.#isReleased || needsSync || this.#isSyncing) return;
    this.#isDirty = false;
    await this.#file.close().catch(() => undefined);
    if (!this.#tookFrames) await this.#file.remove().catch(() => undefined);
  }
}
