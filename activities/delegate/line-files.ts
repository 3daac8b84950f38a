import { nullIfMissing } from '../../core/errors';
import { inputFilesKey } from '../../core/names/object-names';
import { parseInputFiles, type InputFiles } from '../../core/plan/input-files';
import type { LineFile } from '../../providers/provider';
import type { ObjectStore } from '../../storage/object-store';
import type { DelegatedPart } from './contract';

/**
 * Opens the files that requests of a batch name, as ingestion has found and pinned them
 * (docs/design/batch-path.md#files-of-requests). It keeps the list of the batch that was asked for last, because each
 * job of a batch asks again, and the list of 50,000 files has 7 MB.
 */
export class LineFiles {
  readonly #store: ObjectStore;
  #last: { readonly key: string; readonly files: Promise<InputFiles | null> } | null = null;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** Null if the batch names no such file, or if its bytes are gone. @throws object_store_failed, plan_unreadable */
  async open(
    { batchId, planNonce }: Pick<DelegatedPart, 'batchId' | 'planNonce'>,
    fileId: string,
  ): Promise<LineFile | null> {
    const files = await this.#files(inputFilesKey(batchId, planNonce));
    const file = files?.get(fileId);
    if (file === undefined) return null;
    const { key, bytes, filename } = file;
    if ((await this.#store.head(key)) === null) return null;
    return { bytes, filename, open: () => this.#store.stream(key) };
  }

  #files(key: string): Promise<InputFiles | null> {
    if (this.#last?.key === key) return this.#last.files;
    const files = this.#read(key);
    const last = { key, files };
    this.#last = last;
    files.catch(() => {
      if (this.#last === last) this.#last = null;
    });
    return files;
  }

  async #read(key: string): Promise<InputFiles | null> {
    const bytes = await nullIfMissing(this.#store.read(key));
    return bytes === null ? null : parseInputFiles(bytes);
  }
}
