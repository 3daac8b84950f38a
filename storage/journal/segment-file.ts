import { encodeObjectHeader, MAGIC, OBJECT_HEADER_BYTES } from '../../core/journal/magic';
import type { AppendFile } from './append-file';
import type { Syncable, SyncRounds } from './sync-rounds';

/**
 * One segment on a filesystem: written by its one owner, synced in the rounds of the process, closed
 * when its owner has left and it is synced. After any error it is abandoned by its owner; what it
 * holds stays readable, but one that never took a write whole is removed: on a full disk there would
 * be more of them every second.
 */
export class SegmentFile implements Syncable {
  readonly key: string;
  readonly #file: AppendFile;
  readonly #rounds: SyncRounds;
  readonly #onSyncError: (error: unknown) => void;
  #size = 0;
  #isDirty = false;
  #isSyncing = false;
  #isLeft = false;
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
   * Appends `frames`, after the header where they are the first, and returns the position of the
   * first of them. Throws where not every byte was taken; then the segment must not be used again.
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

  /** Called once, when the owner writes no more. */
  async leave(): Promise<void> {
    this.#isLeft = true;
    await this.#closeWhenDone();
  }

  async #closeWhenDone(): Promise<void> {
    const needsSync = this.#isDirty && this.#tookFrames;
    if (!this.#isLeft || needsSync || this.#isSyncing) return;
    this.#isDirty = false;
    await this.#file.close().catch(() => undefined);
    if (!this.#tookFrames) await this.#file.remove().catch(() => undefined);
  }
}
