import { FILES_PREFIX, UPLOADS_PREFIX } from '../../core/names/object-names';
import type { ObjectStore } from '../../storage/object-store';
import type { SweepRows } from '../../storage/postgres/sweep';
import type { Heartbeat } from '../runtime/heartbeat';
import { mapConcurrently } from '../../core/async/map-concurrently';

/** What looking for orphans takes. */
export interface OrphanSearch {
  readonly rows: Pick<SweepRows, 'unownedKeys'>;
  readonly store: Pick<ObjectStore, 'list' | 'delete'>;
  /** Younger objects are left alone: their row may be on its way. */
  readonly minAgeMs: number;
  readonly liveness: Heartbeat;
}

const KEYS_AT_ONCE = 500;
const DELETES_AT_ONCE = 8;

/**
 * Removes objects of files and of parts of uploads that belong to nobody: whoever wrote them died
 * before there was a row. Answers how many. @throws postgres_unavailable, object_store_failed
 */
export async function removeOrphans(search: OrphanSearch): Promise<number> {
  let removed = 0;
  for (const prefix of [FILES_PREFIX, UPLOADS_PREFIX]) {
    for await (const keys of oldKeys(search, prefix)) removed += await removeUnowned(search, keys);
  }
  return removed;
}

async function* oldKeys(
  { store, minAgeMs, liveness }: OrphanSearch,
  prefix: string,
): AsyncGenerator<string[]> {
  const writtenBeforeMs = Date.now() - minAgeMs;
  let keys: string[] = [];
  for await (const { key, writtenAtMs } of store.list(prefix)) {
    liveness.check();
    if (writtenAtMs >= writtenBeforeMs) continue;
    keys.push(key);
    if (keys.length < KEYS_AT_ONCE) continue;
    yield keys;
    keys = [];
  }
  if (keys.length > 0) yield keys;
}

async function removeUnowned(
  { rows, store, liveness }: OrphanSearch,
  keys: readonly string[],
): Promise<number> {
  const orphans = await rows.unownedKeys(keys);
  await mapConcurrently(orphans, DELETES_AT_ONCE, async (key) => {
    liveness.check();
    await store.delete(key);
  });
  return orphans.length;
}
