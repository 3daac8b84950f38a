import { setImmediate as turn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { nullIfMissing } from '../../core/errors';
import { fileIndexKey } from '../../core/names/object-names';
import type { ScanRules, ScanSink, ScanTotals } from '../../core/openai/scan-sink';
import { MIN_INDEXED_BYTES, readFileIndex } from '../../core/plan/file-index';
import type { Ingestion } from './deps';

/** What takes about a millisecond. */
const REQUESTS_AT_ONCE = 4_096;

/** An input file, and the rules of its scan. */
export interface InputToScan {
  readonly key: string;
  readonly bytes: number;
  readonly rules: ScanRules;
}

/**
 * Tells the sink what a scan would, from the index that the upload has left
 * (docs/design/batch-path.md#index-of-a-file). Null, and nothing was told, if there is none, or none for these rules.
 * @throws object_store_failed
 */
export async function tellIndexed(
  { deps, heartbeat }: Pick<Ingestion, 'deps' | 'heartbeat'>,
  { key, bytes, rules }: InputToScan,
  sink: Pick<ScanSink, 'request'>,
): Promise<ScanTotals | null> {
  const { store, release } = deps;
  if (release === undefined || bytes < MIN_INDEXED_BYTES) return null;
  const found = await nullIfMissing(store.read(fileIndexKey(key)));
  const index = found === null ? null : readFileIndex(found, { release, rules, bytes }, crc32);
  if (index === null) return null;
  while (index.tellSome(sink, REQUESTS_AT_ONCE)) {
    heartbeat.check();
    await turn();
  }
  heartbeat.bytes += bytes;
  return { requests: index.requests };
}
