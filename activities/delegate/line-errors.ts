import { createInterface } from 'node:readline';
import type { LineError } from '../../providers/provider';
import type { ObjectStore } from '../../storage/object-store';
import type { JobRow } from '../../storage/postgres/provider-jobs/job-row';

/** A line that the provider refuses, by its id at the provider. */
export interface RefusedLine {
  readonly wireId: string;
  readonly code: string | null;
  readonly param: string | null;
}

/** The wire ids of the lines that a provider names by their number in the job's input. */
export async function lineErrorsOf(
  store: ObjectStore,
  { stagedKey }: JobRow,
  errors: readonly LineError[],
): Promise<RefusedLine[]> {
  if (errors.length === 0 || stagedKey === null) return [];
  const byIndex = new Map(errors.map((error) => [error.index, error]));
  const found: RefusedLine[] = [];
  const input = store.stream(stagedKey);
  let index = 0;
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    const error = byIndex.get(index++);
    const wireId = error === undefined ? undefined : /"(n[0-9a-z]{18})"/.exec(line)?.[1];
    if (error === undefined || wireId === undefined) continue;
    found.push({ wireId, code: error.code, param: error.param });
  }
  return found;
}
