import type { Batch, BatchError } from 'openai/resources/batches';
import { grouped } from '../output';
import { hasEnded } from './exit-codes';
import { relativeTime, humanDuration, localTime, printable } from './human-format';
import { jobTable, totalCost } from './job-table';
import { paintedTable, statusColor, type Cell, type Paint } from './paint';

import type { ProviderJob } from './provider-job';

type Row = readonly Cell[];

/** Everything the server reports about a batch and its jobs at providers, as tables for people. */
export function describeBatch(
  batch: Batch,
  { paint, nowMs, jobs }: { paint: Paint; nowMs: number; jobs: readonly ProviderJob[] },
): string {
  const rows: Row[] = [
    ['batch', printable(batch.id)],
    ['status', [statusColor(batch.status), batch.status]],
    ['requests', requestSummary(batch)],
    ...tokenRows(batch),
    ...optional('provider cost', totalCost(jobs)),
    ['endpoint', printable(batch.endpoint)],
    ...optional('model', batch.model),
    ...optional('window', batch.completion_window),
    ...timeRows(batch, nowMs),
    ['input file', printable(batch.input_file_id)],
    ...optional('output file', batch.output_file_id),
    ...optional('error file', batch.error_file_id),
    ...Object.entries(batch.metadata ?? {}).map(([key, value]): Row => [
      'metadata',
      `${printable(key)}=${printable(value)}`,
    ]),
  ];
  const dimmed = rows.map(([name = '', ...values]): Row => [['dim', String(name)], ...values]);
  const there = jobs.length === 0 ? [] : ['', jobTable(jobs, { paint, nowMs, showsBatch: false })];
  return [paintedTable(dimmed, paint), ...describeErrors(batch, paint), ...there].join('\n');
}

/** `1,000: 990 completed, 10 failed`, and how many requests are open. */
export function requestSummary(batch: Batch): string {
  const { total = 0, completed = 0, failed = 0 } = batch.request_counts ?? {};
  if (total === 0) return hasEnded(batch) ? 'none' : 'not counted yet';
  const open = total - completed - failed;
  const counts = [`${grouped(completed)} completed`, `${grouped(failed)} failed`];
  if (open > 0) counts.push(`${grouped(open)} ${hasEnded(batch) ? 'not done' : 'to do'}`);
  return `${grouped(total)}: ${counts.join(', ')}`;
}

/** `12,345 in (1,000 cached), 45,678 out (100 reasoning)`; `null` without usage. */
export function tokenSummary({ usage }: Batch): string | null {
  if (!usage?.total_tokens) return null;
  const cached = usage.input_tokens_details?.cached_tokens ?? 0;
  const reasoning = usage.output_tokens_details?.reasoning_tokens ?? 0;
  const detail = (count: number, what: string): string =>
    count === 0 ? '' : ` (${grouped(count)} ${what})`;
  const input = `${grouped(usage.input_tokens)} in${detail(cached, 'cached')}`;
  return `${input}, ${grouped(usage.output_tokens)} out${detail(reasoning, 'reasoning')}`;
}

/** The batch's errors as a table with line numbers; empty without errors. */
export function describeErrors({ errors }: Batch, paint: Paint): string[] {
  const found = errors?.data ?? [];
  if (found.length === 0) return [];
  const rows = found.map((error): Row => errorRow(error));
  return [paint('red', 'errors'), paintedTable(rows, paint).replace(/^/gm, '  ')];
}

function errorRow({ line, code, param, message }: BatchError): Row {
  const where = typeof line === 'number' ? `line ${line}` : 'file';
  return [where, printable(code ?? ''), printable(param ?? ''), printable(message ?? '')];
}

/** Unix time in seconds at which the batch ended; `null` while it runs. */
export function endedAtSec(batch: Batch): number | null {
  return batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at ?? null;
}

function tokenRows(batch: Batch): Row[] {
  const tokens = tokenSummary(batch);
  return tokens === null ? [] : [['tokens', tokens]];
}

function optional(name: string, value: string | null | undefined): Row[] {
  return value ? [[name, printable(value)]] : [];
}

function timeRows(batch: Batch, nowMs: number): Row[] {
  const times: [name: string, atSec: number | null | undefined][] = [
    ['created', batch.created_at],
    ['in progress', batch.in_progress_at],
    ['finalizing', batch.finalizing_at],
    ['cancelling', batch.cancelling_at],
    ['completed', batch.completed_at],
    ['failed', batch.failed_at],
    ['expired', batch.expired_at],
    ['cancelled', batch.cancelled_at],
    ['expires', hasEnded(batch) ? null : batch.expires_at],
  ];
  const rows = times.flatMap(([name, atSec]): Row[] =>
    atSec ? [[name, `${localTime(atSec)} (${relativeTime(atSec, nowMs)})`]] : [],
  );
  const endSec = endedAtSec(batch);
  if (endSec !== null) rows.push(['took', humanDuration((endSec - batch.created_at) * 1_000)]);
  return rows;
}
