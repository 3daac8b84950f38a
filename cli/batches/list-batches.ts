import type { Batch } from 'openai/resources/batches';
import { grouped } from '../output';
import { hasEnded } from './exit-codes';
import { relativeTime, printable } from './human-format';
import { paintedTable, statusColor, type Cell, type Paint } from './paint';

/** A table with a heading and one row per batch. */
export function batchTable(batches: readonly Batch[], paint: Paint, nowMs: number): string {
  const heading = ['batch', 'status', 'done', 'failed', 'created', 'expires', 'endpoint', 'model'];
  const rows = batches.map((batch) => batchRow(batch, nowMs));
  return paintedTable([heading.map((text): Cell => ['dim', text]), ...rows], paint);
}

function batchRow(batch: Batch, nowMs: number): Cell[] {
  const { total = 0, completed = 0, failed = 0 } = batch.request_counts ?? {};
  const isOpen = !hasEnded(batch) && batch.expires_at;
  return [
    printable(batch.id),
    [statusColor(batch.status), batch.status],
    total === 0 ? '-' : `${grouped(completed + failed)}/${grouped(total)}`,
    failed === 0 ? '-' : ['red', grouped(failed)],
    relativeTime(batch.created_at, nowMs),
    isOpen ? relativeTime(batch.expires_at ?? 0, nowMs) : '-',
    printable(batch.endpoint),
    printable(batch.model ?? '-'),
  ];
}
