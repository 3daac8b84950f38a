import { missingAs } from '../../core/errors';
import { decodePlanEntry } from '../../core/plan/plan-entry';
import type { ObjectReader, ObjectStore } from '../../storage/object-store';
import type { Chunk } from './chunk';
import { readPlan } from './read-plan';

/** What the plan says of a chunk: its entries, and their runs unless it has none. */
export interface PlanParts {
  readonly entries: Buffer;
  readonly runs: Uint8Array | null;
}

/** Reads the runs of a chunk's part of the plan; null if they are not needed, or not there. Never rejects. */
export type ReadRuns = (chunk: Chunk) => Promise<Uint8Array | null>;

/**
 * What an attempt reads while it waits for its row: plan and input never change. Each is read again after a failure
 * (docs/design/batch-path.md#the-first-requests).
 */
export class EarlyReads {
  readonly #store: ObjectStore;
  readonly #chunk: Chunk;
  readonly #readRuns: ReadRuns;
  #plan: Promise<PlanParts> | null;
  #input: Promise<ObjectReader> | null;

  constructor(store: ObjectStore, chunk: Chunk, readRuns: ReadRuns) {
    this.#store = store;
    this.#chunk = chunk;
    this.#readRuns = readRuns;
    this.#plan = this.#readPlan();
    this.#input = this.#openInput();
    // They may not be needed. What is taken rejects for its taker, too.
    void Promise.all([this.#plan, this.#input])
      .then(readFirstLines)
      .catch(() => undefined);
  }

  /** @throws plan_unreadable, object_store_failed */
  takePlan(): Promise<PlanParts> {
    const early = this.#plan;
    this.#plan = null;
    return early ?? this.#readPlan();
  }

  /** The caller closes it. @throws input_missing, object_store_failed */
  takeInput(): Promise<ObjectReader> {
    const early = this.#input;
    this.#input = null;
    return early ?? this.#openInput();
  }

  /** Closes an input that was not taken. Does not wait for it, because the store may hang. */
  closeUnused(): void {
    const unused = this.#input;
    this.#input = null;
    unused?.then((reader) => reader.close()).catch(() => undefined);
  }

  async #readPlan(): Promise<PlanParts> {
    const [entries, runs] = await Promise.all([
      readPlan(this.#store, this.#chunk, this.#chunk),
      this.#readRuns(this.#chunk),
    ]);
    return { entries, runs };
  }

  #openInput(): Promise<ObjectReader> {
    return this.#store
      .open(this.#chunk.inputKey)
      .catch(missingAs('input_missing', 'the input object is gone'));
  }
}

/** Gets the chunk's first lines into memory, so that the first requests leave without waiting for a read. */
async function readFirstLines([{ entries }, input]: [PlanParts, ObjectReader]): Promise<void> {
  if (entries.length > 0) await input.readAhead?.(decodePlanEntry(entries, 0).offset);
}
