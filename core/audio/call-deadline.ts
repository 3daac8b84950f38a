/** A recording as far as its length is known. */
export interface RecordingLength {
  readonly bytes: number;
  /** As its container states it, s; null if it does not. */
  readonly durationSec: number | null;
}

/** A recording has at least so many bytes a second: speech in Opus at 24 kbit/s. */
const LEAST_BYTES_PER_SEC = 3_000;
/** A guess for the share of a recording whose duration is not known: 128 kbit/s. */
const USUAL_BYTES_PER_SEC = 16_000;
const SPOKEN_CHARACTERS_PER_SEC = 15;

/** How long a recording is at most, s: as stated, else by its bytes. */
export function longestDurationSec({ bytes, durationSec }: RecordingLength): number {
  return durationSec ?? bytes / LEAST_BYTES_PER_SEC;
}

/** The expected cost of a recording in seconds of audio, above 0. */
export function recordingCost({ bytes, durationSec }: RecordingLength): number {
  return Math.max(1, durationSec ?? bytes / USUAL_BYTES_PER_SEC);
}

/** The expected cost of a text to speak in seconds of audio, above 0. */
export function speechCost(characters: number): number {
  return Math.max(1, characters / SPOKEN_CHARACTERS_PER_SEC);
}

/** The settings of the time limit of a call. */
export interface DeadlineSettings {
  readonly minTimeoutMs: number;
  readonly timeoutFactor: number;
}

/** The time limit of a call that has so much audio in all, ms (docs/design/audio-scheduling.md#deadlines). */
export function callTimeoutMs(
  durationSec: number,
  { minTimeoutMs, timeoutFactor }: DeadlineSettings,
): number {
  return Math.max(minTimeoutMs, Math.ceil(timeoutFactor * durationSec * 1_000));
}
