import { isJsonObject } from '../core/openai/json-object';
import { invalid } from './request';

/** How the simulated model server behaves. All settings can be changed while it runs. */
export interface SimulatorSettings {
  /** Time from the end of the request to the answer, ms. */
  readonly latencyMs: number;
  /** Largest random deviation of the latency in both directions, ms. */
  readonly latencyJitterMs: number;
  /** Tokens per answer, unless the request has a smaller limit. */
  readonly outputTokens: number;
  /** Share of requests, 0 to 1, that fail with 500 at random. */
  readonly errorRate: number;
  /** Concurrent requests before the next one is answered with 429; 0 for no limit. */
  readonly maxConcurrency: number;
  /** `Retry-After` of such a 429, seconds. */
  readonly retryAfterSec: number;
  /** Length of an embedding, unless the request sets `dimensions`. */
  readonly embeddingDimensions: number;
  /** Models that exist; others are answered with 404. Empty means any model. */
  readonly models: readonly string[];
}

interface Range {
  readonly wire: string;
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
}

type NumericSetting = Exclude<keyof SimulatorSettings, 'models'>;

const RANGES: Readonly<Record<NumericSetting, Range>> = {
  latencyMs: { wire: 'latency_ms', min: 0, max: 3_600_000, whole: false },
  latencyJitterMs: { wire: 'latency_jitter_ms', min: 0, max: 3_600_000, whole: false },
  outputTokens: { wire: 'output_tokens', min: 1, max: 1_000_000, whole: true },
  errorRate: { wire: 'error_rate', min: 0, max: 1, whole: false },
  maxConcurrency: { wire: 'max_concurrency', min: 0, max: 1_000_000, whole: true },
  retryAfterSec: { wire: 'retry_after_sec', min: 0, max: 86_400, whole: true },
  embeddingDimensions: { wire: 'embedding_dimensions', min: 1, max: 100_000, whole: true },
};
const NUMERIC = Object.keys(RANGES) as NumericSetting[];

/** The settings in the form of `/simulator/config`. */
export function settingsToWire(settings: SimulatorSettings): Record<string, unknown> {
  const wire: Record<string, unknown> = {};
  for (const name of NUMERIC) wire[RANGES[name].wire] = settings[name];
  return { ...wire, models: settings.models };
}

/** Replaces members of `settings`. @throws invalid_request for an unknown member or a value out of range */
export function changedSettings(settings: SimulatorSettings, patch: unknown): SimulatorSettings {
  if (!isJsonObject(patch)) {
    throw invalid(null, 'the settings must be a JSON object');
  }
  const changes: Partial<Record<keyof SimulatorSettings, unknown>> = {};
  for (const [wire, value] of Object.entries(patch)) {
    const name = wire === 'models' ? wire : NUMERIC.find((key) => RANGES[key].wire === wire);
    if (name === undefined) {
      const known = Object.keys(settingsToWire(settings)).join(', ');
      throw invalid(wire, `there is no setting ${wire}; the settings are ${known}`);
    }
    changes[name] = value;
  }
  return checkedSettings({ ...settings, ...changes });
}

/** Returns `settings` if all values are valid. @throws invalid_request for a value out of range */
export function checkedSettings(
  settings: Readonly<Record<keyof SimulatorSettings, unknown>>,
): SimulatorSettings {
  for (const name of NUMERIC) {
    const { wire, min, max, whole } = RANGES[name];
    const value = settings[name];
    const isNumber = typeof value === 'number' && value >= min && value <= max;
    if (isNumber && (!whole || Number.isInteger(value))) continue;
    const kind = whole ? 'a whole number' : 'a number';
    throw invalid(wire, `${wire} must be ${kind} from ${min} to ${max}`);
  }
  const { models } = settings;
  if (!Array.isArray(models) || !models.every((model) => typeof model === 'string')) {
    throw invalid('models', 'models must be a list of names');
  }
  return settings as SimulatorSettings;
}
