import { detailsText, keyword } from '../core/batch/temporal-bounds';
import type { ModelLanes } from './model-lanes';
import type { OverdueQueue } from './queue-watch';

/** Where a batch is on its way, as operators see it. */
export type BatchPhase = 'validating' | 'in_progress' | 'finalizing' | 'stopping';

/** What the details are made from. */
export interface DetailsView {
  readonly phase: BatchPhase;
  readonly stopReason: string | null;
  readonly total: number;
  readonly unroutedLines: number;
  readonly models: readonly ModelLanes[];
  readonly overdue: readonly OverdueQueue[];
}

/** The batch as an operator sees it in the Temporal UI: one row per model, in Markdown. */
export function describeBatch(view: DetailsView): string {
  const stop = view.stopReason === null ? '' : `, stopping: **${view.stopReason}**`;
  const lines = [
    `**${view.phase}**${stop}: ${view.total} requests`,
    '',
    '| model | queue | requests | completed | failed | open | lanes | rate/s | p95 | last chunk |',
    '|---|---|---:|---:|---:|---:|---:|---:|---:|---|',
    ...view.models.map(modelRow),
  ];
  if (view.unroutedLines > 0)
    lines.push('', `${view.unroutedLines} requests name a model that no gateway serves.`);
  for (const { plan, isUndecided, open } of view.models) {
    if (!isUndecided || open.isEmpty) continue;
    lines.push(
      '',
      `**No worker could send requests of ${cell(plan.model)}** when the file was read: they are looked at again when all others are settled.`,
    );
  }
  for (const { plan, unroutedSinceMs } of view.models) {
    if (unroutedSinceMs === null) continue;
    lines.push(
      '',
      `**No worker can send requests of ${cell(plan.model)}** since ${minute(unroutedSinceMs)}: start one with a gateway for it, or cancel the batch.`,
    );
  }
  for (const { model, queue, sinceMs } of view.overdue) {
    const since = minute(sinceMs);
    lines.push(
      '',
      `**Nobody takes chunks of ${cell(model)}** from queue \`${keyword(queue)}\` since ${since}: is there a worker for it, and has it a free slot?`,
    );
  }
  return detailsText(lines.join('\n'));
}

function minute(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function modelRow(lanes: ModelLanes): string {
  const cells = [
    cell(lanes.plan.model),
    cell(lanes.queue),
    lanes.plan.entries,
    lanes.completed,
    lanes.failed,
    lanes.open.remaining,
    lanes.running,
    lanes.ratePerSec === null ? '–' : lanes.ratePerSec.toFixed(1),
    lanes.p95Ms === null ? '–' : `${Math.round(lanes.p95Ms)} ms`,
    lanes.lastExit,
  ];
  return `| ${cells.join(' | ')} |`;
}

function cell(text: string): string {
  return keyword(text).replaceAll('|', '\\|');
}
