import { within } from '../../../platform/within';

/** Runs of one object that may wait for the disk. */
const MOST_WAITING_RUNS = 2;
/** A disk that takes longer for a run hangs. Reads must not wait for it. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Resolves when the disk has all but the latest of these writes, or hangs. Who gets an object from the store waits here after each
 * run, and with it the connection: what the disk cannot take would be fetched again.
 */
export async function roomOnDisk(writes: readonly Promise<void>[]): Promise<void> {
  const oldest = writes[writes.length - 1 - MOST_WAITING_RUNS];
  if (oldest !== undefined) await within(LONGEST_WAIT_MS, oldest, () => undefined);
}
