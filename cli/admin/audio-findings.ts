import type { AudioPage } from '../../platform/audio-page';
import type { GatewayConfig } from '../../platform/config-schema';
import { formatDuration } from '../../platform/units';

/** What is wrong with the audio of a gateway, as a worker sees it. */
export interface AudioFindings {
  /** Settings that cost lines their tries. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Compares a worker with the audio of its gateway (docs/audio.md#batches). */
export function audioFindings(
  { audio_request_timeout: timeoutMs }: Pick<GatewayConfig, 'audio_request_timeout'>,
  { workers, limits }: AudioPage,
): AudioFindings {
  const ttlMs = limits.batch_queue_ttl_ms;
  const isLong = workers.length === 0 || ttlMs < timeoutMs / 2;
  const errors = isLong
    ? []
    : [
        `audio_request_timeout (${formatDuration(timeoutMs)}) must be more than twice gateway.audio.fair_request_queue.batch_queue_ttl ` +
          `(${formatDuration(ttlMs)}), or the time in the queue costs lines their tries`,
      ];
  const warnings = workers
    .filter(({ status }) => status !== 'serving')
    .map(({ address, status, reason }) => {
      const why = reason === null ? '' : ` (${reason})`;
      return `the audio worker ${address} gets no calls: ${status}${why}`;
    });
  return { errors, warnings };
}
