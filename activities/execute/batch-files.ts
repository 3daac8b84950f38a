import { SharedValues } from '../../core/async/shared-values';
import { missingAs } from '../../core/errors';
import { inputFilesKey } from '../../core/names/object-names';
import { parseInputFiles, type InputFiles } from '../../core/plan/input-files';
import type { ObjectStore } from '../../storage/object-store';
import type { Chunk } from './chunk';

/** The files of a batch, while a chunk uses them. */
export interface OpenBatchFiles {
  readonly files: InputFiles;
  close(): void;
}

/**
 * The files that requests of batches name, as ingestion has found and pinned them
 * (docs/design/batch-path.md#files-of-requests). All chunks of a batch in this process share one list, because that of
 * 50,000 files has 7 MB.
 */
export class BatchFiles {
  readonly #lists: SharedValues<InputFiles>;

  constructor(store: Pick<ObjectStore, 'read'>) {
    this.#lists = new SharedValues((key) => readFiles(store, key));
  }

  /** The caller closes it. @throws plan_unreadable, object_store_failed */
  async open({
    batchId,
    planNonce,
  }: Pick<Chunk, 'batchId' | 'planNonce'>): Promise<OpenBatchFiles> {
    const { value, close } = await this.#lists.open(inputFilesKey(batchId, planNonce));
    return { files: value, close };
  }
}

async function readFiles(store: Pick<ObjectStore, 'read'>, key: string): Promise<InputFiles> {
  const bytes = await store
    .read(key)
    .catch(missingAs('plan_unreadable', 'the list of the files of requests is gone'));
  return parseInputFiles(bytes);
}
