import { FILES_PREFIX, INDEXES_PREFIX, UPLOADS_PREFIX } from '../../core/names/object-names';
import { deleteKeys } from './delete-objects';
import type { SweepDeps, Sweeper } from './ports';

const KEYS_AT_ONCE = 500;
const SEARCH_EVERY_MS = 3_600_000;
/** Minimum age of an orphan, even if `retention.scratch` is shorter: a new object gets its row within seconds. */
const MIN_AGE_MS = 3_600_000;

/**
 * Removes what crashed writers left behind: temporary files of the store, and objects that never got a
 * row. The search for such objects lists every file, so a process does it at most once an hour.
 */
export function createCrashSweeper(): Sweeper {
  let nextSearchAtMs = 0;
  return async (deps, _input, check) => {
    let removed = await deps.store.removeUnfinished();
    const startedAtMs = performance.now();
    if (startedAtMs >= nextSearchAtMs) {
      removed += await removeOrphans(deps, check);
      nextSearchAtMs = startedAtMs + SEARCH_EVERY_MS;
    }
    return { removed, nextSeq: null };
  };
}

/** Removes files, their indexes, and parts of uploads without a row: their writers died before they inserted it. */
async function removeOrphans(deps: SweepDeps, check: () => void): Promise<number> {
  let removed = 0;
  for (const prefix of [FILES_PREFIX, INDEXES_PREFIX, UPLOADS_PREFIX]) {
    for await (const keys of oldKeys(deps, prefix, check)) {
      const orphans = await deps.rows.unownedKeys(keys);
      await deleteKeys(deps.store, orphans, check);
      removed += orphans.length;
    }
  }
  return removed;
}

/** Keys of objects that are old enough to have a row, in groups. */
async function* oldKeys(
  { store, retention }: SweepDeps,
  prefix: string,
  check: () => void,
): AsyncGenerator<string[]> {
  const writtenBeforeMs = Date.now() - Math.max(retention.scratch, MIN_AGE_MS);
  let keys: string[] = [];
  for await (const { key, writtenAtMs } of store.list(prefix)) {
    check();
    if (writtenAtMs >= writtenBeforeMs) continue;
    keys.push(key);
    if (keys.length < KEYS_AT_ONCE) continue;
    yield keys;
    keys = [];
  }
  if (keys.length > 0) yield keys;
}
