import type { BatchRow } from '../storage/postgres/batches/types';

/**
 * Rows of batches that are being ingested. Their ingestion needs columns that never change, in several places, and each
 * look-up costs a round trip.
 */
export class SharedRows {
  readonly #find: (batchId: string) => Promise<BatchRow | null>;
  /** The batches of running ingestions; those of attempts that run at once share a row. */
  readonly #rows = new Map<string, Promise<BatchRow | null> | null>();

  constructor(find: (batchId: string) => Promise<BatchRow | null>) {
    this.#find = find;
  }

  /** The row as it was found first, if `during` runs for the batch. @throws what the look-up throws */
  find(batchId: string): Promise<BatchRow | null> {
    const known = this.#rows.get(batchId);
    if (known != null) return known;
    const found = this.#find(batchId);
    if (known === null) this.#remember(batchId, found);
    return found;
  }

  /** Runs `work`, during which the row is looked up once. */
  async during<T>(batchId: string, work: () => Promise<T>): Promise<T> {
    if (!this.#rows.has(batchId)) this.#rows.set(batchId, null);
    try {
      return await work();
    } finally {
      this.#rows.delete(batchId);
    }
  }

  /** A look-up that failed, or found nothing, is repeated. */
  #remember(batchId: string, found: Promise<BatchRow | null>): void {
    this.#rows.set(batchId, found);
    const forget = (): void => {
      if (this.#rows.get(batchId) === found) this.#rows.set(batchId, null);
    };
    found.then((row) => {
      if (row === null) forget();
    }, forget);
  }
}
