import type { Batch } from 'openai/resources/batches';
import { isNightshiftError } from '../../core/errors';
import type { BatchService } from './batch-service';
import type { ClientIo } from './client-io';
import { hasEnded } from './exit-codes';
import type { Interrupts } from './interrupts';
import { createProgressView } from './progress-view';
import type { Reporter } from './reporter';
import { humanDuration } from './human-format';

export interface WatchOptions {
  readonly service: BatchService;
  readonly io: Pick<ClientIo, 'ask' | 'pollMs'>;
  readonly interrupts: Interrupts;
  readonly reporter: Reporter;
  /** How long a server may stay away before the watch gives up. */
  readonly patienceMs: number;
}

/** `isLeft`: the person went away, the batch goes on. */
export interface WatchEnd {
  readonly batch: Batch;
  readonly isLeft: boolean;
}

const MAX_POLL_MS = 5_000;
/** Looks become rarer with the batch's age: at most 5 % of it lies between two. */
const POLL_SHARE = 0.05;
/** The watch itself tries again, with words. */
const SDK_RETRIES = 0;

/**
 * Looks at a batch until it has ended or the person leaves it. A server that stays away is asked again
 * for `patienceMs`, with words. Ctrl-C asks whether to cancel where somebody can answer, and leaves the
 * batch running otherwise; SIGTERM always leaves it.
 *
 * @throws unavailable when the patience is over; what the server refuses
 */
export async function watchBatch(first: Batch, options: WatchOptions): Promise<WatchEnd> {
  const { io, interrupts, reporter } = options;
  const view = createProgressView(reporter);
  const startedAtMs = performance.now();
  let batch = first;
  try {
    for (;;) {
      view.show(batch, performance.now());
      if (hasEnded(batch)) return { batch, isLeft: false };
      const ageMs = performance.now() - startedAtMs;
      await interrupts.sleep(Math.min(Math.max(io.pollMs, ageMs * POLL_SHARE), MAX_POLL_MS));
      if (interrupts.pending === null) batch = (await look(batch.id, options)) ?? batch;
      if (interrupts.pending === null) continue;
      const answered = await answerInterrupt(batch, options);
      if (answered === null) return { batch, isLeft: true };
      batch = answered;
    }
  } finally {
    reporter.clear();
  }
}

/** The batch as it is now, however long the server stays away; `null` when interrupted. */
async function look(id: string, options: WatchOptions): Promise<Batch | null> {
  const { service, interrupts, reporter, patienceMs } = options;
  const startedAtMs = performance.now();
  for (let waitMs = options.io.pollMs * 2, failures = 0; ; waitMs = Math.min(waitMs * 2, 30_000)) {
    try {
      const { signal } = interrupts;
      const batch = await service.retrieve(id, { signal, retries: SDK_RETRIES });
      if (failures > 0) reporter.say('the server answers again');
      return batch;
    } catch (error) {
      if (interrupts.pending !== null) return null;
      if (!isNightshiftError(error, 'unavailable')) throw error;
      if (performance.now() - startedAtMs + waitMs > patienceMs) throw error;
      if (failures === 0) reporter.say(awayWords(error.message, patienceMs));
      failures += 1;
      await interrupts.sleep(waitMs);
      if (interrupts.pending !== null) return null;
    }
  }
}

function awayWords(reason: string, patienceMs: number): string {
  const short = reason.split(': is it running', 1)[0];
  return `${short}; the batch is safe on the server, trying again for ${humanDuration(patienceMs)}`;
}

/** What the person wants: the batch to watch on, or `null` for leaving it. */
async function answerInterrupt(batch: Batch, options: WatchOptions): Promise<Batch | null> {
  const { service, io, interrupts, reporter } = options;
  const mayAsk = interrupts.pending === 'SIGINT' && batch.status !== 'cancelling';
  interrupts.rearm();
  reporter.clear();
  if (!mayAsk || io.ask === undefined) return null;
  const question = `\nCancel ${batch.id}? [c]ancel it, [l]eave it running (Enter), [w]atch on: `;
  const answer = (await io.ask(question, interrupts.signal))?.trim().toLowerCase() ?? null;
  if (answer === null || interrupts.pending !== null) return null;
  if (/^w/.test(answer)) return batch;
  if (!/^(c|y)/.test(answer)) return null;
  reporter.say('cancelling: finished answers are kept, a few seconds more for those under way');
  return cancelOrLook(service, batch.id, interrupts);
}

/** A batch that has ended meanwhile cannot be cancelled: then its end is the news. */
async function cancelOrLook(
  service: BatchService,
  id: string,
  { signal }: Interrupts,
): Promise<Batch> {
  try {
    return await service.cancel(id);
  } catch (error) {
    if (!isNightshiftError(error, 'conflict')) throw error;
    return service.retrieve(id, { signal, retries: 2 });
  }
}
