import type { RealtimeUsage } from './server-event';

/** An event of an audio worker, as the wire decodes it. Times count from the beginning of the session. */
export interface WorkerEvent {
  readonly kind: string;
  readonly text: string;
  /** The first characters of a `PARTIAL` that will not change. */
  readonly stableChars: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly usage: WorkerUsage | null;
}

/** What an audio worker counted for an item. */
interface WorkerUsage {
  readonly audioSeconds: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The usage of an item of `audioMs`, which counts if the worker did not count. */
export function realtimeUsage(usage: WorkerUsage | null, audioMs: number): RealtimeUsage {
  const { audioSeconds = 0, inputTokens = 0, outputTokens = 0 } = usage ?? {};
  if (inputTokens + outputTokens > 0) {
    return {
      type: 'tokens',
      input_tokens: inputTokens,
      output_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
    };
  }
  return {
    type: 'duration',
    seconds: Math.ceil(isPlausible(audioSeconds) ? audioSeconds : audioMs / 1_000),
  };
}

/** JSON has neither NaN nor infinity. */
function isPlausible(seconds: number): boolean {
  return seconds > 0 && Number.isFinite(seconds);
}
