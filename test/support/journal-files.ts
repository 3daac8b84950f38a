import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exists } from './process-state';

/** How many answers the journal of a batch holds, in the data directory of a stack. */
export function journalledAnswers(dataDir: string, batchId: string): number {
  return answersIn(join(dataDir, 'objects', 'objects', 'batches', batchId, 'journal'));
}

/** How many answers the segments below this folder hold. */
export function answersIn(journal: string): number {
  return customIdsIn(journal).length;
}

/** The custom ids of these answers. */
export function customIdsIn(journal: string): string[] {
  const options = { recursive: true, withFileTypes: true } as const;
  const entries = exists(() => readdirSync(journal, options)) ?? [];
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .flatMap((text) => [...text.matchAll(/"custom_id":"([^"]*)"/g)].map(([, id]) => id ?? ''));
}
