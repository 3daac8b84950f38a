import { NightshiftError, nullIfMissing } from '../core/errors';
import { inputErrorsKey } from '../core/names/object-names';
import type { ObjectStore } from '../storage/object-store';
import type { ErrorEntry } from '../storage/postgres/batches/types';

/** Why the input file was refused; null if it was not. @throws object_corrupt, object_store_failed */
export async function readInputErrors(
  store: Pick<ObjectStore, 'read'>,
  batchId: string,
): Promise<ErrorEntry[] | null> {
  const bytes = await nullIfMissing(store.read(inputErrorsKey(batchId)));
  if (bytes === null) return null;
  try {
    const { data } = JSON.parse(bytes.toString('utf8')) as { data: ErrorEntry[] };
    if (Array.isArray(data)) return data;
  } catch (cause) {
    throw new NightshiftError('object_corrupt', 'errors.json is not JSON', { cause });
  }
  throw new NightshiftError('object_corrupt', 'errors.json has no list of errors');
}
