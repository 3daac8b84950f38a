import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exists } from './process-state';

/** How many answers the journal of a batch holds, in the data directory of a stack. */
export function journalledAnswers(dataDir: string, batchId: string): number {
  return answersIn(join(dataDir, 'objects', 'objects', 'batches', batchId, 'journal'));
}

/** How many answers the segments below this folder hold. */
export function answersIn(journal: string): number {
  const options = { recursive: true, withFileTypes: true } as const;
  const entries = exists(() => readdirSync(journal, options)) ?? [];
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .reduce((sum, text) => sum + text.split('"custom_id":').length - 1, 0);
}
