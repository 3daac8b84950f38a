import { forEachConcurrently } from '../../core/async/for-each-concurrently';
import type { ObjectStore } from '../../storage/object-store';

const DELETES_AT_ONCE = 8;

/** Deletes objects by key. Stops when `check` throws. @throws object_store_failed */
export async function deleteKeys(
  store: Pick<ObjectStore, 'delete'>,
  keys: Iterable<string>,
  check: () => void,
): Promise<void> {
  await forEachConcurrently(keys, DELETES_AT_ONCE, async (key) => {
    check();
    await store.delete(key);
  });
}

/** Deletes all objects below `prefix` except `kept`. Returns their number. @throws object_store_failed */
export async function deletePrefix(
  store: Pick<ObjectStore, 'list' | 'delete'>,
  prefix: string,
  { kept, check }: { readonly kept: readonly string[]; check(): void },
): Promise<number> {
  let deleted = 0;
  await forEachConcurrently(store.list(prefix), DELETES_AT_ONCE, async ({ key }) => {
    check();
    if (kept.includes(key)) return;
    await store.delete(key);
    deleted++;
  });
  return deleted;
}
