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
  /** When the chunk should be tried again, ms from now; null if that is useless in this task queue. */
  readonly retryInMs: number | null;
}

/** What {@link checkAdmission} needs. */
export interface AdmissionDeps extends Pick<ExecuteDeps, 'registry' | 'routes'> {
  readonly admissionQueue: AdmissionQueue;
  /** The task queue that the chunk came from. */
  readonly taskQueue: string;
}

/** Longest wait for a gateway that does not answer, before the wait for admission is added. */
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
  // A suspect line is never deferred: no other try begins while it waits, so permits become free.
  if (chunk.exclusive) return null;
  const { limiterKey, breaker, key } = route;
  const nowMs = Date.now();
  const at = { nowMs, random: Math.random() };
  if (chunk.reroutes && breaker.state === 'open' && nowMs < breaker.retryAtMs) {
    const awayMs = Math.min(breaker.retryAtMs - nowMs, MAX_AWAY_MS);
    const retryInMs = awayMs + admissionQueue.retryInMs(limiterKey, chunkKey(chunk), at);
    return { exitReason: EXIT_REASON.breakerOpen, message: gatewayAwayMessage(key), retryInMs };
  }
  // If a permit is free, no chunk waits for one, so this check admits the chunk.
  if (admissionQueue.hasPlace(limiterKey, chunk.tenant)) {
    admissionQueue.forget(limiterKey, chunkKey(chunk));
    return null;
  }
  const retryInMs = admissionQueue.retryInMs(limiterKey, chunkKey(chunk), at);
  return { exitReason: EXIT_REASON.noPermit, message: noPermitMessage(chunk.model), retryInMs };
}

/** Tells operators why a chunk waits that has no permit. */
export function noPermitMessage(model: string): string {
  return `Model "${model}" has reached its limit of requests in flight.`;
}

/** Tells operators why a chunk waits whose circuit breaker is open. */
export function gatewayAwayMessage(gateway: string): string {
  return `Gateway ${gateway} does not answer.`;
}

/** The chunk's model has no gateway here, because the configuration changed after the chunk was routed. */
function unrouted({ model, reroutes }: Chunk, { routes, taskQueue }: AdmissionDeps): Deferral {
  const message = `This worker has no gateway for the model "${model}".`;
  // A workflow of an older version does not look up another route. With this reason its lane pauses.
  if (!reroutes) return { exitReason: EXIT_REASON.noPermit, message, retryInMs: null };
  const isHere = routes.routeOf(model)?.queue === taskQueue;
  return { exitReason: EXIT_REASON.unrouted, message, retryInMs: isHere ? 1_000 : null };
}
