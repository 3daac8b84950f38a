import { detailsText, keyword } from '../core/batch/temporal-bounds';
import type { OverdueQueue } from './chunk-in-flight';
import type { ModelRun } from './model-run';

/** The phase of a batch, as operators see it. */
export type BatchPhase = 'validating' | 'in_progress' | 'finalizing' | 'stopping';

/** What the details are made from. */
export interface DetailsView {
  readonly phase: BatchPhase;
  readonly stopReason: string | null;
  readonly total: number;
  readonly unroutedLines: number;
  readonly models: readonly ModelRun[];
  readonly overdue: readonly OverdueQueue[];
}

/**
 * The batch as an operator sees it in the Temporal UI: one row per model, in Markdown, and a paragraph for
 * everything that keeps it from going on.
 */
export function describeBatch(view: DetailsView): string {
  const stop = view.stopReason === null ? '' : `, stopping: **${view.stopReason}**`;
  const lines = [
    `**${view.phase}**${stop}: ${view.total} requests`,
    '',
    '| model | queue | requests | completed | failed | open | lanes | rate/s | p95 | last chunk |',
    '|---|---|---:|---:|---:|---:|---:|---:|---:|---|',
    ...view.models.map(modelRow),
    ...warnings(view).flatMap((text) => ['', text]),
  ];
  return detailsText(lines.join('\n'));
}

function warnings({ unroutedLines, models, overdue }: DetailsView): string[] {
  const lost = unroutedLines > 0;
  return [
    ...(lost ? [`${unroutedLines} requests name a model that no gateway serves.`] : []),
    ...models
      .filter(({ isUndecided, progress }) => isUndecided && !progress.open.isEmpty)
      .map(
        ({ plan }) =>
          `**No worker could send requests of ${cell(plan.model)}** when the file was read. They are looked up again when all other requests are settled.`,
      ),
    ...models.flatMap(({ plan, unroutedSinceMs }) =>
      unroutedSinceMs === null
        ? []
        : `**No worker can send requests of ${cell(plan.model)}** since ${minute(unroutedSinceMs)}. Start a worker with a gateway for it, or cancel the batch.`,
    ),
    ...overdue.map(
      ({ model, queue, sinceMs }) =>
        `**No worker takes chunks of ${cell(model)}** from queue \`${keyword(queue)}\` since ${minute(sinceMs)}. Check that a worker serves this queue and has a free slot.`,
    ),
  ];
}

function minute(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function modelRow({ plan, queue, progress, running }: ModelRun): string {
  const { completed, failed, open, ratePerSec, p95Ms, lastExit } = progress;
  const cells = [
    cell(plan.model),
    cell(queue),
    plan.entries,
    completed,
    failed,
    open.remaining,
    running,
    ratePerSec === null ? '–' : ratePerSec.toFixed(1),
    p95Ms === null ? '–' : `${Math.round(p95Ms)} ms`,
    lastExit,
  ];
  return `| ${cells.join(' | ')} |`;
}

function cell(text: string): string {
  return keyword(text).replaceAll('|', '\\|');
}
