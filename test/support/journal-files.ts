import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { exists } from './process-state';
import type { TestStack } from './stack';

/** How many answers the journal of a batch holds. */
export function journalledAnswers(stack: Pick<TestStack, 'objectPath'>, batchId: string): number {
  return answersIn(stack.objectPath('batches', batchId, 'journal'));
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
