/** Runs of one object that may wait for the disk. */
const MOST_WAITING_RUNS = 2;

/**
 * Resolves when the disk has all but the latest of these writes. Who gets an object from the store waits here, and with it the
 * connection: what the disk cannot take would be fetched again.
 */
export async function roomOnDisk(writes: readonly Promise<void>[]): Promise<void> {
  await writes[writes.length - 1 - MOST_WAITING_RUNS];
}
