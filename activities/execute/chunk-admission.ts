import type { ExitReason } from '../../core/chunks/exit-reason';
import { EXIT_REASON } from '../../core/chunks/exit-reason';
import type { AdmissionQueue } from './admission-queue';
import type { Chunk } from './chunk';
import { chunkKey } from './chunk';
import type { ExecuteDeps } from './deps';

/** Why a chunk can send nothing in this process now. */
export interface Deferral {
  readonly exitReason: ExitReason;
  /** For operators. */
  readonly message: string;
  /** When it should try again, ms from now; null if trying again at this task queue is of no use. */
  readonly retryInMs: number | null;
}

/** What an admission is decided by. */
export interface AdmissionDeps extends Pick<ExecuteDeps, 'registry' | 'routes'> {
  readonly admissionQueue: AdmissionQueue;
  /** The queue that the chunk came from. */
  readonly taskQueue: string;
}

/** A chunk comes back at the latest after this time to see whether its gateway answers again. */
const MAX_AWAY_MS = 60_000;

/**
 * Checks whether a chunk could send anything, before it takes its row and reads its journal. Most
 * attempts of a chunk that waits at the server end here, so this must cost next to nothing
 * (docs/design/execution.md#waiting-at-the-server). Null: the chunk may begin.
 */
export function checkAdmission(chunk: Chunk, deps: AdmissionDeps): Deferral | null {
  const { admissionQueue } = deps;
  const route = deps.registry.route(chunk.model);
  if (route === null) return unrouted(chunk, deps);
  // A suspect line waits inside: while it asks for an exclusive send, no other try begins.
  if (chunk.exclusive) return null;
  const { limiterKey, breaker, key } = route;
  const nowMs = Date.now();
  const at = { nowMs, random: Math.random() };
  if (chunk.reroutes && breaker.state === 'open' && nowMs < breaker.retryAtMs) {
    const awayMs = Math.min(breaker.retryAtMs - nowMs, MAX_AWAY_MS);
    const retryInMs = awayMs + admissionQueue.retryInMs(limiterKey, chunkKey(chunk), at);
    return { exitReason: EXIT_REASON.breakerOpen, message: gatewayAway(key), retryInMs };
  }
  // While a permit is free no chunk waits in the queue, so the queue has a place.
  if (admissionQueue.hasPlace(limiterKey, chunk.tenant)) {
    admissionQueue.forget(limiterKey, chunkKey(chunk));
    return null;
  }
  const retryInMs = admissionQueue.retryInMs(limiterKey, chunkKey(chunk), at);
  return { exitReason: EXIT_REASON.noPermit, message: noPermit(chunk.model), retryInMs };
}

/** What a chunk without a permit waits for, for operators. */
export function noPermit(model: string): string {
  return `Model "${model}" has as many requests in flight as it may have.`;
}

/** What a chunk waits for whose circuit breaker is open, for operators. */
export function gatewayAway(gateway: string): string {
  return `Gateway ${gateway} does not answer.`;
}

/** The configuration has changed since the chunk was sent here. */
function unrouted({ model, reroutes }: Chunk, { routes, taskQueue }: AdmissionDeps): Deferral {
  const message = `This worker has no gateway for the model "${model}".`;
  // A workflow of an older version can only pause its lane.
  if (!reroutes) return { exitReason: EXIT_REASON.noPermit, message, retryInMs: null };
  const isHere = routes.routeOf(model)?.queue === taskQueue;
  return { exitReason: EXIT_REASON.unrouted, message, retryInMs: isHere ? 1_000 : null };
}
