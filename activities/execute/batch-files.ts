import { inputFilesKey } from '../../core/names/object-names';
import { parseInputFiles, type InputFiles } from '../../core/plan/input-files';
import type { ObjectStore } from '../../storage/object-store';
import type { Chunk } from './chunk';
import { missingAs } from './missing-as';

/** The files of a batch, while a chunk uses them. */
export interface OpenBatchFiles {
  readonly files: InputFiles;
  close(): void;
}

interface Entry {
  readonly files: Promise<InputFiles>;
  users: number;
}

/**
 * The files that requests of batches name, as ingestion has found and pinned them
 * (docs/design/batch-path.md#files-of-requests). All chunks of a batch in this process share one list, because that of
 * 50,000 files has 7 MB.
 */
export class BatchFiles {
  readonly #store: Pick<ObjectStore, 'read'>;
  readonly #entries = new Map<string, Entry>();

  constructor(store: Pick<ObjectStore, 'read'>) {
    this.#store = store;
  }

  /** The caller closes it. @throws plan_unreadable, object_store_failed */
  async open({
    batchId,
    planNonce,
  }: Pick<Chunk, 'batchId' | 'planNonce'>): Promise<OpenBatchFiles> {
    const key = inputFilesKey(batchId, planNonce);
    const entry = this.#entries.get(key) ?? this.#begin(key);
    entry.users++;
    const close = (): void => {
      if (--entry.users === 0) this.#forget(key, entry);
    };
    try {
      return { files: await entry.files, close };
    } catch (error) {
      this.#forget(key, entry);
      throw error;
    }
  }

  #begin(key: string): Entry {
    const entry = { files: this.#read(key), users: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  async #read(key: string): Promise<InputFiles> {
    const bytes = await this.#store
      .read(key)
      .catch(missingAs('plan_unreadable', 'the list of the files of requests is gone'));
    return parseInputFiles(bytes);
  }

  #forget(key: string, entry: Entry): void {
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}
