import type { Batch } from 'openai/resources/batches';
import { grouped } from '../output';
import { describeErrors, endedAtSec, requestSummary, tokenSummary } from './describe-batch';
import type { FetchedResults } from './fetch-results';
import { humanBytes, humanDuration, printable, humanRate } from './human-format';
import { paintedTable, statusColor, type Cell, type Paint } from './paint';
import { STDOUT } from './result-targets';

/** How to show the summary, and facts that the batch does not contain. */
export interface SummaryOptions {
  readonly paint: Paint;
  /** What was downloaded; `null` if the command downloads nothing. */
  readonly results: FetchedResults | null;
  /** From the start of the upload to the last result; `null` if this process did not run all of it. */
  readonly elapsedMs: number | null;
}

/** Summary of an ended batch: counts, tokens, time, files, failures by code. */
export function endSummary(batch: Batch, { paint, results, elapsedMs }: SummaryOptions): string {
  const rows: Cell[][] = [
    ['batch', printable(batch.id)],
    ['status', [statusColor(batch.status), batch.status]],
    ['requests', requestSummary(batch)],
  ];
  const tokens = tokenSummary(batch);
  if (tokens !== null) rows.push(['tokens', tokens]);
  const tookMs = elapsedMs ?? ((endedAtSec(batch) ?? batch.created_at) - batch.created_at) * 1_000;
  rows.push(['elapsed', elapsedTime(batch, tookMs)]);
  if (results !== null) rows.push(...fileRows(batch, results));
  const dimmed = rows.map(([name = '', ...cells]): Cell[] => [['dim', String(name)], ...cells]);
  return [
    paintedTable(dimmed, paint),
    ...describeErrors(batch, paint),
    ...failureLines(results, paint),
  ].join('\n');
}

function elapsedTime({ request_counts: counts }: Batch, tookMs: number): string {
  const done = (counts?.completed ?? 0) + (counts?.failed ?? 0);
  const perSecond = done / (tookMs / 1_000);
  const rate = done === 0 || tookMs <= 0 ? '' : ` (${humanRate(perSecond)} requests a second)`;
  return `${humanDuration(tookMs)}${rate}`;
}

function fileRows(batch: Batch, { output, errors, audio }: FetchedResults): Cell[][] {
  const named = (target: string): string => (target === STDOUT ? 'stdout' : target);
  const row = (name: string, file: FetchedResults['output']): Cell[][] =>
    file === null ? [] : [[name, `${named(file.target)} (${humanBytes(file.bytes)})`]];
  const rows = [...row('output', output), ...row('errors', errors)];
  if (audio !== null) {
    const { files, dir, bytes } = audio;
    rows.push(['audio', `${grouped(files)} files in ${dir} (${humanBytes(bytes)})`]);
  }
  const isBare = rows.length === 0 && batch.status !== 'failed';
  return isBare ? [['files', 'the batch has no result files']] : rows;
}

function failureLines(results: FetchedResults | null, paint: Paint): string[] {
  if (results === null || results.failures.length === 0) return [];
  const counts = results.failures.map(({ count }) => grouped(count));
  const width = Math.max(...counts.map((count) => count.length));
  const rows = results.failures.map(({ code, example }, index): Cell[] => [
    ['red', (counts[index] ?? '').padStart(width)],
    printable(code),
    example,
  ]);
  return [
    'requests without a successful answer, by error code',
    paintedTable(rows, paint).replace(/^/gm, '  '),
  ];
}
