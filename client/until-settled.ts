import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { NightshiftError } from '../core/errors';

export interface UntilSettledOptions {
  /** What is asked for, in words: `the schedule nightshift-sweep`. */
  readonly what: string;
  readonly limitMs?: number;
  readonly everyMs?: number;
}

const LIMIT_MS = 30_000;
const EVERY_MS = 500;

/** Codes of gRPC for answers that will not be others later. */
const LASTING = new Set([
  3, // INVALID_ARGUMENT
  5, // NOT_FOUND
  7, // PERMISSION_DENIED
  12, // UNIMPLEMENTED
  16, // UNAUTHENTICATED
]);

/**
 * Does `work`, again and again for half a minute where the server refuses: one that has just begun
 * answers before it can answer for everything. @throws temporal_unavailable with the server's words, and
 * what the SDK throws where trying again is of no use
 */
export async function untilSettled<T>(
  work: () => Promise<T>,
  { what, limitMs = LIMIT_MS, everyMs = EVERY_MS }: UntilSettledOptions,
): Promise<T> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const words = passingWords(error);
      if (words === null) throw error;
      if (performance.now() >= endMs) {
        const message = `Temporal answers, but not for ${what}: ${words}. Try again, or look into its log.`;
        throw new NightshiftError('temporal_unavailable', message, { cause: error });
      }
    }
    await sleep(everyMs);
  }
}

/** What the server said, where it may say otherwise later. */
function passingWords(error: unknown): string | null {
  const cause = error instanceof ServiceError ? error.cause : error;
  if (!isGrpcServiceError(cause) || LASTING.has(cause.code)) return null;
  return cause.details || cause.message;
}
