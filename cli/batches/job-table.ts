import { grouped } from '../output';
import { printable, relativeTime } from './human-format';
import { paintedTable, type Cell, type Color, type Paint } from './paint';
import type { ProviderJob } from './provider-job';

const COLORS: Partial<Record<ProviderJob['status'], Color>> = {
  completed: 'green',
  partial_complete: 'yellow',
  failed: 'red',
  expired: 'red',
  cancelled: 'yellow',
};

/** A table with a heading and one row per job. `showsBatch`: the jobs belong to several batches. */
export function jobTable(
  jobs: readonly ProviderJob[],
  { paint, nowMs, showsBatch }: { paint: Paint; nowMs: number; showsBatch: boolean },
): string {
  const names = ['model', 'provider', 'status', 'done', 'failed', 'cost', 'created', 'id there'];
  const heading = [...(showsBatch ? ['batch'] : []), ...names];
  const rows = jobs.map((job): Cell[] => [
    ...(showsBatch ? [printable(job.batch_id)] : []),
    ...jobRow(job, nowMs),
  ]);
  return paintedTable([heading.map((text): Cell => ['dim', text]), ...rows], paint);
}

/** `$12.34` over all jobs with a known cost; null if there is none. */
export function totalCost(jobs: readonly ProviderJob[]): string | null {
  const costs = jobs.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  return costs.length === 0 ? null : dollars(costs.reduce((sum, cost) => sum + cost, 0));
}

function jobRow(job: ProviderJob, nowMs: number): Cell[] {
  const { total, completed, failed } = job.request_counts;
  const status = printable(job.status);
  const color = COLORS[job.status];
  const reason = job.error === null ? '' : ` (${printable(job.error.code ?? job.error.message)})`;
  return [
    printable(job.model),
    printable(job.provider),
    [color ?? 'cyan', `${status}${reason}`],
    total === 0 ? '-' : `${grouped(completed + failed)}/${grouped(total)}`,
    failed === 0 ? '-' : ['red', grouped(failed)],
    job.cost === null ? '-' : dollars(job.cost),
    relativeTime(job.created_at, nowMs),
    printable(job.external_id ?? '-'),
  ];
}

/** A batch of small requests costs less than a cent. */
function dollars(amount: number): string {
  return amount > 0 && amount < 1 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}
