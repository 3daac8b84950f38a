import { log } from '@temporalio/activity';
import { BATCH_RECORDS_PREFIX, parseBatchRecordKey } from '../../core/names/object-names';
import type { SweepDeps, Sweeper } from './ports';

const IDS_AT_ONCE = 500;
/** One search serves all pages of a sweep. */
const SEARCH_EVERY_MS = 60_000;

/**
 * Whether the store has a batch without a row. Rows go after their objects, so this means that the database
 * is older than the store. Rows then do not prove that an object is unused
 * (docs/design/ends.md#lost-rows). Throws if store or database cannot be asked.
 */
export function createLostRowsCheck(): (deps: SweepDeps, check: () => void) => Promise<boolean> {
  let searchedAtMs = -Infinity;
  return async (deps, check) => {
    if (performance.now() - searchedAtMs < SEARCH_EVERY_MS) return false;
    const lost = await findLostBatch(deps, check);
    if (lost === null) {
      searchedAtMs = performance.now();
      return false;
    }
    deps.observer.rowsLost();
    log.error('the database lacks rows: run nightshift restore', { batchId: lost });
    return true;
  };
}

/** Makes `sweeper` remove nothing while rows are lost. */
export function unlessRowsAreLost(
  sweeper: Sweeper,
  areRowsLost: ReturnType<typeof createLostRowsCheck>,
): Sweeper {
  return async (deps, input, check) => {
    if (await areRowsLost(deps, check)) return { removed: 0, nextSeq: null };
    return sweeper(deps, input, check);
  };
}

async function findLostBatch(deps: SweepDeps, check: () => void): Promise<string | null> {
  let ids: string[] = [];
  for await (const { key } of deps.store.list(BATCH_RECORDS_PREFIX)) {
    check();
    const id = parseBatchRecordKey(key);
    if (id !== null && ids.push(id) < IDS_AT_ONCE) continue;
    const lost = await firstLost(deps, ids);
    if (lost !== null) return lost;
    ids = [];
  }
  return firstLost(deps, ids);
}

async function firstLost(
  { rows, store }: SweepDeps,
  ids: readonly string[],
): Promise<string | null> {
  if (ids.length === 0) return null;
  for (const id of await rows.withoutRow(ids)) {
    // A sweep may have removed record and row between the listing and the query.
    const record = await store.head(`${BATCH_RECORDS_PREFIX}${id}.json`);
    if (record !== null) return id;
  }
  return null;
}
