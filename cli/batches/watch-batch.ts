import type { Batch } from 'openai/resources/batches';
import { isNightshiftError } from '../../core/errors';
import type { BatchService } from './batch-service';
import type { ClientIo } from './client-io';
import { hasEnded } from './exit-codes';
import { humanDuration } from './human-format';
import type { Interrupts } from './interrupts';
import { createProgressView } from './progress-view';
import type { Reporter } from './reporter';

/** How to watch a batch. */
export interface WatchOptions {
  readonly service: BatchService;
  readonly io: Pick<ClientIo, 'ask' | 'pollMs'>;
  readonly interrupts: Interrupts;
  readonly reporter: Reporter;
  /** How long the server may be away before the watch gives up. */
  readonly patienceMs: number;
}

/** How a watch ended. */
export interface WatchEnd {
  readonly batch: Batch;
  /** The user stopped watching, and the batch continues. */
  readonly isDetached: boolean;
}

const MAX_POLL_MS = 5_000;
/** The pause between polls is this share of the time watched, so an end is noticed at most 5 % late. */
const POLL_SHARE = 0.05;
/** None: the watch retries by itself, so that it can report it. */
const SDK_RETRIES = 0;

/**
 * Polls a batch until it has ended or the user detaches. A server that is away is polled again for
 * `patienceMs`. Ctrl-C asks whether to cancel; without a terminal, and for SIGTERM, the batch is left
 * running.
 *
 * @throws unavailable after `patienceMs`; not_found and other refusals of the server
 */
export async function watchBatch(first: Batch, options: WatchOptions): Promise<WatchEnd> {
  const { io, interrupts, reporter } = options;
  const view = createProgressView(reporter);
  const startedAtMs = performance.now();
  let batch = first;
  try {
    for (;;) {
      view.show(batch, performance.now());
      if (hasEnded(batch)) return { batch, isDetached: false };
      const ageMs = performance.now() - startedAtMs;
      await interrupts.sleep(Math.min(Math.max(io.pollMs, ageMs * POLL_SHARE), MAX_POLL_MS));
      if (interrupts.pending === null) batch = (await poll(batch.id, options)) ?? batch;
      if (interrupts.pending === null) continue;
      const answered = await handleInterrupt(batch, options);
      if (answered === null) return { batch, isDetached: true };
      batch = answered;
    }
  } finally {
    reporter.clear();
  }
}

/** The batch as it is now, retried while the server is away; `null` at an interrupt. */
async function poll(id: string, options: WatchOptions): Promise<Batch | null> {
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
      if (failures === 0) reporter.say(retryNotice(error.message, patienceMs));
      failures += 1;
      await interrupts.sleep(waitMs);
      if (interrupts.pending !== null) return null;
    }
  }
}

function retryNotice(reason: string, patienceMs: number): string {
  const short = reason.split(': is it running', 1)[0];
  return `${short}; the batch is safe on the server, trying again for ${humanDuration(patienceMs)}`;
}

/** Asks what to do about the batch. Returns it to go on watching, or `null` to detach. */
async function handleInterrupt(batch: Batch, options: WatchOptions): Promise<Batch | null> {
  const { service, io, interrupts, reporter } = options;
  const mayAsk = interrupts.pending === 'SIGINT' && batch.status !== 'cancelling';
  interrupts.rearm();
  reporter.clear();
  if (!mayAsk || io.ask === undefined) return null;
  const question = `\nCancel ${batch.id}? [c]ancel it, [l]eave it running (Enter), [w]atch it further: `;
  const answer = (await io.ask(question, interrupts.signal))?.trim().toLowerCase() ?? null;
  if (answer === null || interrupts.pending !== null) return null;
  if (/^w/.test(answer)) return batch;
  if (!/^(c|y)/.test(answer)) return null;
  reporter.say(
    'cancelling: finished answers are kept, and requests in flight may finish for a few seconds',
  );
  return cancelOrRetrieve(service, batch.id, interrupts);
}

/** A batch that has just ended cannot be cancelled: return it as it ended. */
async function cancelOrRetrieve(
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
