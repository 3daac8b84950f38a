import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSegmentKey } from '../../core/names/object-names';
import { exists } from './process-state';

/** How many answers the journal of a batch holds, in the data directory of a stack. */
export function journalledAnswers(dataDir: string, batchId: string): number {
  const folder = join(dataDir, 'objects', 'objects');
  const options = { recursive: true, encoding: 'utf8' } as const;
  const names = exists(() => readdirSync(join(folder, 'batches', batchId), options));
  const keys = (names ?? []).map((name) => `batches/${batchId}/${name}`);
  return keys
    .filter((key) => parseSegmentKey(key) !== null)
    .map((key) => readFileSync(join(folder, key), 'latin1').split('"custom_id":').length - 1)
    .reduce((sum, count) => sum + count, 0);
}
