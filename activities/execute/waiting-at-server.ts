import { ApplicationFailure } from '@temporalio/activity';
import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { Route } from '../../inference/registry';
import type { ExecuteChunkResult } from '../contract';
import type { AdmissionQueue } from './admission-queue';
import type { Chunk } from './chunk';
import { chunkKey } from './chunk';
import type { Deferral } from './chunk-admission';
import { gatewayAwayMessage, noPermitMessage } from './chunk-admission';

/*
 * A chunk that cannot send waits at the Temporal server: its attempt fails with a delay after which the
 * server starts the next one. Failed attempts add no events to the history, so even a wait of hours costs
 * none (docs/design/execution.md#waiting-at-the-server).
 */

/** Longest and shortest wait of a chunk whose lines are not due yet. */
const MAX_NOT_DUE_MS = 60_000;
const MIN_NOT_DUE_MS = 1_000;
/** The other lanes of a model stand still while its chunk waits, so it must return soon after its wait. */
const MAX_SLICE_AFTER_WAIT_MS = 15_000;

/** An attempt that made no progress. */
export interface FruitlessAttempt {
  readonly chunk: Chunk;
  readonly route: Route;
  readonly exitReason: ExitReason;
  /** When the first line in backoff is due, Unix ms; null if none is in backoff. */
  readonly nextDueMs: number | null;
}

/** The result of a chunk that may not begin. @throws if the chunk may wait at the server */
export function deferredResult(
  chunk: Chunk,
  { exitReason, message, retryInMs }: Deferral,
  worker: string,
): ExecuteChunkResult {
  if (chunk.mayWait && retryInMs !== null) throw waitFailure(exitReason, message, retryInMs);
  const nothing = { completed: 0, failed: 0, answered: 0, ratePerSec: null, p95Ms: null };
  return { next: chunk.from, ...nothing, worker, left: exitReason, stopCause: null };
}

/** The failure that makes the server retry the attempt later; null if the chunk must return instead. */
export function waitAfter(
  { chunk, route, exitReason, nextDueMs }: FruitlessAttempt,
  admissionQueue: AdmissionQueue,
): ApplicationFailure | null {
  const nowMs = Date.now();
  const spreadMs = admissionQueue.retryInMs(route.limiterKey, chunkKey(chunk), {
    nowMs,
    random: Math.random(),
  });
  switch (exitReason) {
    case EXIT_REASON.noPermit:
      return waitFailure(exitReason, noPermitMessage(chunk.model), spreadMs);
    case EXIT_REASON.breakerOpen: {
      const awayMs = clamp(route.breaker.retryAtMs - nowMs, 0, MAX_NOT_DUE_MS);
      return waitFailure(exitReason, gatewayAwayMessage(route.key), awayMs + spreadMs);
    }
    case EXIT_REASON.held:
      return waitFailure(exitReason, heldMessage(chunk.model), spreadMs);
    case EXIT_REASON.timeSlice: {
      const dueMs = clamp((nextDueMs ?? 0) - nowMs, MIN_NOT_DUE_MS, MAX_NOT_DUE_MS);
      return waitFailure(exitReason, 'No request could be sent within the time slice.', dueMs);
    }
    default:
      return null;
  }
}

/** Tells operators why a chunk waits whose requests a gateway held until it had to leave. */
function heldMessage(model: string): string {
  return `The gateway has held all requests of model "${model}" in its queue.`;
}

/** The chunk with a shorter time slice if it may wait at the server. For its second and later attempts. */
export function withShortSlice(chunk: Chunk): Chunk {
  if (!chunk.mayWait) return chunk;
  const mostMs = Math.max(MAX_SLICE_AFTER_WAIT_MS, 4 * (chunk.p95Ms ?? 0));
  return { ...chunk, timeSliceMs: Math.min(chunk.timeSliceMs, mostMs) };
}

/** The exit reason of an attempt that threw a failure of {@link waitAfter}; null for other errors. */
export function waitReasonOf(error: unknown): ExitReason | null {
  if (!(error instanceof ApplicationFailure) || error.category !== 'BENIGN') return null;
  return Object.values(EXIT_REASON).find((reason) => reason === error.type) ?? null;
}

/** Benign: the SDK neither logs it as an error nor counts it as one. */
function waitFailure(type: ExitReason, message: string, nextRetryDelay: number) {
  return ApplicationFailure.create({ message, type, nextRetryDelay, category: 'BENIGN' });
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
