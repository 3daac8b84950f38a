import type { TryOutcome } from '../../core/dispatch/outcome';
import { isJsonObject } from '../../core/openai/json-object';
import { readLineFields } from '../../core/openai/member-ranges';
import type { InputFiles } from '../../core/plan/input-files';
import type { ObjectReader } from '../../storage/object-store';
import { isUnpaid, type LineCosts } from './chunk-costs';
import type { ChunkLine } from './chunk-ledger';

/** Of a recording whose duration is not known. */
const BYTES_PER_SECOND = 16_000;
/** Of speech. */
const CHARACTERS_PER_SECOND = 15;
/** A longer line has its recording in itself. */
const MAX_NAMING_BYTES = 16 * 1024;
/** Four characters of base64 are three bytes. */
const BASE64_RATIO = 3 / 4;

/** Costs of requests for speech, in seconds of audio: the length of a line is nearly that of its text. */
export const SPEECH_COSTS: LineCosts = {
  expected: ({ length }) => wholeSeconds(length / CHARACTERS_PER_SECOND),
  learn: ({ length }) => Promise.resolve(wholeSeconds(length / CHARACTERS_PER_SECOND)),
  real: unpaidOnly,
};

/** What {@link RecordingCosts} reads from. */
export interface RecordingCostsOptions {
  readonly input: ObjectReader;
  readonly files: InputFiles;
}

/**
 * Costs of requests with a recording, in seconds of audio, by its size: this process does not look into recordings
 * (docs/design/recordings.md#fair-shares).
 */
export class RecordingCosts implements LineCosts {
  readonly #options: RecordingCostsOptions;
  /** By plan position. */
  readonly #known = new Map<number, number>();

  constructor(options: RecordingCostsOptions) {
    this.#options = options;
  }

  expected({ position, length }: Pick<ChunkLine, 'position' | 'length'>): number | null {
    if (length > MAX_NAMING_BYTES) return secondsOf(length * BASE64_RATIO);
    return this.#known.get(position) ?? null;
  }

  async learn(line: Pick<ChunkLine, 'position' | 'offset' | 'length'>): Promise<number> {
    // A line that cannot be read now cannot be tried either, and its try says why.
    const bytes = await this.#recordingBytes(line).catch(() => line.length);
    const cost = secondsOf(bytes);
    this.#known.set(line.position, cost);
    return cost;
  }

  readonly real = unpaidOnly;

  async #recordingBytes({ offset, length }: Pick<ChunkLine, 'offset' | 'length'>): Promise<number> {
    const { input, files } = this.#options;
    const line = input.readNow?.(offset, length) ?? (await input.read(offset, length));
    const { bodyStart, bodyEnd } = readLineFields(line);
    const body = JSON.parse(line.toString('utf8', bodyStart, bodyEnd)) as unknown;
    const fileId = isJsonObject(body) ? body['file_id'] : null;
    return files.get(String(fileId))?.bytes ?? length * BASE64_RATIO;
  }
}

function secondsOf(bytes: number): number {
  return wholeSeconds(bytes / BYTES_PER_SECOND);
}

function wholeSeconds(seconds: number): number {
  return Math.max(1, Math.ceil(seconds));
}

/** Answers do not say how long the audio was, so the expected cost stays. */
function unpaidOnly(outcome: TryOutcome): number | null {
  return isUnpaid(outcome) ? 0 : null;
}
