/**
 * What the stacks of a test run consist of (docs/testing.md#variants-of-the-stack): by default they keep
 * objects in a folder and have one API and one worker.
 */
import type { StoreKind } from '../../embedded/s3/store-kind';

/** Where stacks keep their objects. */
export const STORE: StoreKind = storeKind(process.env['NIGHTSHIFT_TEST_STORE'] ?? 'filesystem');

/** How many processes of each kind, API and worker, a stack has. */
export const PROCESSES = processCount(process.env['NIGHTSHIFT_TEST_PROCESSES'] ?? '1');

/** How long an answer waits at most until it is in the journal: `object_store.flush_interval`, and the put. */
export const FLUSH_MS = STORE === 's3' ? 1_000 + 500 : 200;

/** A test whose subject is a folder. On S3 it is skipped, and the title says why. */
export function itOnFilesystem(title: string, whyNotS3: string, test: () => void): void {
  (STORE === 'filesystem' ? it : it.skip)(titleOnFilesystem(title, whyNotS3), test);
}

/** The title of tests whose subject is a folder; on S3 with the reason why they are skipped. */
export function titleOnFilesystem(title: string, whyNotS3: string): string {
  return STORE === 'filesystem' ? title : `${title} (not on S3: ${whyNotS3})`;
}

function storeKind(name: string): StoreKind {
  if (name === 'filesystem' || name === 's3') return name;
  throw new Error(`NIGHTSHIFT_TEST_STORE is ${name}: use filesystem or s3`);
}

function processCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new Error(`NIGHTSHIFT_TEST_PROCESSES is ${text}: use a whole number of 1 or more`);
}
