import type { ExecuteChunkInput } from '../contract';
import type { ExitReason } from '../../core/chunks/exit-reason';
import type { ExecuteDeps } from './deps';
import type { AdmissionQueue } from './admission-queue';

/** Why a chunk can send nothing in this process now. */
export interface Deferral {
  readonly left: Extract<ExitReason, 'no_permit' | 'breaker_open' | 'unrouted'>;
  readonly message: string;
  /** When it should ask again; null where asking at this queue is no use. */
  readonly retryInMs: number | null;
}

/** What an admission is made from. */
export type AdmissionDeps = Pick<ExecuteDeps, 'registry' | 'routes'>;

/** A gateway that is away is asked by one chunk; the others come again after this at the latest. */
const MAX_AWAY_MS = 60_000;

/** Names a chunk among all that wait. */
export function waitKey({ batchId, safe, from }: ExecuteChunkInput): string {
  return `${batchId}/${safe}/${from}`;
}

/**
 * Looks whether a chunk could send anything, before it takes its row and reads its journal: most
 * attempts of a chunk that waits end here, and cost next to nothing. Null: it may begin.
 */
export function checkAdmission(
  chunk: ExecuteChunkInput,
  { deps, room, taskQueue }: { deps: AdmissionDeps; room: AdmissionQueue; taskQueue: string },
): Deferral | null {
  const route = deps.registry.route(chunk.model);
  if (route === null) return unrouted(chunk, { deps, taskQueue });
  // A suspect waits inside: while it asks to run alone nobody else begins.
  if (chunk.solo === true) return null;
  const { limiterKey, breaker, key } = route;
  const nowMs = Date.now();
  const at = { nowMs, random: Math.random() };
  if (chunk.reroutes === true && breaker.state === 'open' && nowMs < breaker.retryAtMs) {
    const awayMs = Math.min(breaker.retryAtMs - nowMs, MAX_AWAY_MS);
    const retryInMs = awayMs + room.retryInMs(limiterKey, waitKey(chunk), at);
    return { left: 'breaker_open', message: `Gateway ${key} does not answer.`, retryInMs };
  }
  // While there is a permit to be had nobody stands in line for it.
  if (room.hasPlace(limiterKey, chunk.tenant)) {
    room.forget(limiterKey, waitKey(chunk));
    return null;
  }
  const retryInMs = room.retryInMs(limiterKey, waitKey(chunk), at);
  return { left: 'no_permit', message: noPermit(chunk.model), retryInMs };
}

/** For people: what a chunk waits for that has no permit. */
export function noPermit(model: string): string {
  return `All requests that may be in flight of model "${model}" are.`;
}

/** The configuration has changed since the chunk was sent here. */
function unrouted(
  { model, reroutes }: ExecuteChunkInput,
  { deps, taskQueue }: { deps: AdmissionDeps; taskQueue: string },
): Deferral {
  const message = `This worker has no gateway for the model "${model}".`;
  // A workflow of an older version knows no other way to wait.
  if (reroutes !== true) return { left: 'no_permit', message, retryInMs: null };
  const isHere = deps.routes.routeOf(model)?.queue === taskQueue;
  return { left: 'unrouted', message, retryInMs: isHere ? 1_000 : null };
}
