import type { Batch } from 'openai/resources/batches';
import { grouped } from '../output';
import { hasEnded } from './exit-codes';
import { humanDuration, humanRate } from './human-format';
import { statusColor } from './paint';
import { createRate } from './rate';
import type { Reporter } from './reporter';

/** Shows the progress of one batch. */
export interface ProgressView {
  show(batch: Batch, nowMs: number): void;
}

const BAR_WIDTH = 24;
/** Without a terminal: a line per new status, per tenth of the requests, and at least every minute. */
const PLAIN_SHARE = 0.1;
const PLAIN_EVERY_MS = 60_000;

/** Draws a bar on a terminal, and writes a few plain lines elsewhere. */
export function createProgressView(reporter: Reporter): ProgressView {
  const rate = createRate();
  const plain = createPlainFilter();
  return {
    show(batch, nowMs) {
      const { total = 0, completed = 0, failed = 0 } = batch.request_counts ?? {};
      const done = completed + failed;
      // Validation takes time too, but says nothing about the rate of requests.
      if (batch.status === 'in_progress') rate.add(done, nowMs);
      const step: Step = { batch, total, done, failed, perSecond: rate.perSecond() };
      if (reporter.isLive) {
        reporter.status(barLine(step, reporter));
      } else if (plain(step, nowMs)) {
        reporter.say(describe(step).join(', '));
      }
    },
  };
}

interface Step {
  readonly batch: Batch;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  /** `null` while it is unknown. */
  readonly perSecond: number | null;
}

function barLine(step: Step, { paint, columns }: Reporter): string {
  const { total, done, batch } = step;
  const filled = total === 0 ? 0 : Math.round((done / total) * BAR_WIDTH);
  const text = describe(step).join(', ');
  const bar = `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}`;
  // A line that wraps could not be redrawn: leave out the bar, then cut the text.
  const width = columns - 1;
  if (BAR_WIDTH + 2 + text.length > width) return text.slice(0, width);
  return `${paint(statusColor(batch.status), bar)}  ${text}`;
}

function describe({ batch, total, done, failed, perSecond }: Step): string[] {
  if (total === 0) return [batch.status];
  const percent = `${Math.floor((done / total) * 100)}%`;
  const facts = [`${batch.status} ${percent}`, `${grouped(done)} of ${grouped(total)}`];
  if (failed > 0) facts.push(`${grouped(failed)} failed`);
  if (batch.status !== 'in_progress' || done === total || perSecond === null) return facts;
  facts.push(`${humanRate(perSecond)}/s`);
  if (perSecond > 0) facts.push(`${humanDuration(((total - done) / perSecond) * 1_000)} left`);
  return facts;
}

function createPlainFilter(): (step: Step, nowMs: number) => boolean {
  let status = '';
  let share = 0;
  let saidAtMs = 0;
  return ({ batch, total, done }, nowMs) => {
    const shareNow = total === 0 ? 0 : done / total;
    const isNews =
      batch.status !== status ||
      shareNow - share >= PLAIN_SHARE ||
      (nowMs - saidAtMs >= PLAIN_EVERY_MS && !hasEnded(batch));
    if (!isNews) return false;
    status = batch.status;
    share = shareNow;
    saidAtMs = nowMs;
    return true;
  };
}
