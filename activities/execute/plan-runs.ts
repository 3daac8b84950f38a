import { isNightshiftError } from '../../core/errors';
import { runsKey } from '../../core/names/object-names';
import { decodeRuns, runsBytes } from '../../core/plan/runs';
import type { ObjectStore } from '../../storage/object-store';
import type { Chunk } from './chunk';

/** Which part of which plan. */
type PlanPart = Pick<Chunk, 'batchId' | 'planNonce' | 'safeModel' | 'from' | 'to'>;

/** About 1 MB of keys. */
const MAX_ABSENT = 4096;

/**
 * Reads the runs of plans (docs/design/journal.md#runs). All of a plan is there before its first chunk, so it is remembered
 * which plans have none: otherwise each chunk would ask the store again.
 */
export class PlanRuns {
  readonly #store: Pick<ObjectStore, 'read'>;
  readonly #absent = new Set<string>();

  constructor(store: Pick<ObjectStore, 'read'>) {
    this.#store = store;
  }

  /** Null if the plan has none, or if they cannot be read: they only improve the order of sending. Never rejects. */
  async read({ batchId, planNonce, safeModel, from, to }: PlanPart): Promise<Uint8Array | null> {
    const key = runsKey(batchId, planNonce, safeModel);
    if (this.#absent.has(key)) return null;
    try {
      return decodeRuns(await this.#store.read(key, runsBytes({ from, to })), { from, to });
    } catch (error) {
      if (isNightshiftError(error, 'object_missing')) this.#noteAbsent(key);
      return null;
    }
  }

  /** Forgets all if there are too many. */
  #noteAbsent(key: string): void {
    if (this.#absent.size >= MAX_ABSENT) this.#absent.clear();
    this.#absent.add(key);
  }
}
