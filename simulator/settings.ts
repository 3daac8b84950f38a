import { isJsonObject } from '../core/openai/json-object';
import type { EngineSettings } from './engine/engine';
import { invalid } from './request';

/** How the simulated model server behaves. All settings can be changed while it runs. */
export interface SimulatorSettings extends EngineSettings, SimulatedFaults {
  /** Time from the end of the request to the answer, ms. Only without the engine, so with 0 `slots`. */
  readonly latencyMs: number;
  /** Largest random deviation of the latency in both directions, ms. */
  readonly latencyJitterMs: number;
  /** Tokens of the median answer, unless the request has a smaller limit. */
  readonly outputTokens: number;
  /** Spread of the lengths of answers (`OutputLengths.sigma`); 0 makes all of them equal. */
  readonly outputSigma: number;
  /** Chooses another set of lengths. */
  readonly seed: number;
  /** Concurrent requests before the next one is answered with 429; 0 for no limit. */
  readonly maxConcurrency: number;
  /** `Retry-After` of each 429 for too many requests, seconds. */
  readonly retryAfterSec: number;
  /** Length of an embedding, unless the request sets `dimensions`. */
  readonly embeddingDimensions: number;
  /** Models that exist; others are answered with 404. Empty means any model. */
  readonly models: readonly string[];
}

/** Faults of the whole server (docs/design/simulator.md#faults). */
export interface SimulatedFaults {
  /** Share of requests, 0 to 1, that fail with 500 at random. */
  readonly errorRate: number;
  /** Share of requests, 0 to 1, whose connection is closed in the middle of the answer. */
  readonly cutRate: number;
  /** How many times longer everything takes; at least 1. */
  readonly slowdown: number;
  /** Accepts requests and makes no progress with any. */
  readonly stall: boolean;
  /** Answers model requests and `/health` with 503. */
  readonly notReady: boolean;
  /** Closes the connections of all requests except those to `/simulator/`. */
  readonly refuse: boolean;
}

interface Range {
  readonly wire: string;
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
}

type KeysOf<T> = {
  [K in keyof SimulatorSettings]: SimulatorSettings[K] extends T ? K : never;
}[keyof SimulatorSettings];
type NumericSetting = KeysOf<number>;
type SwitchSetting = KeysOf<boolean>;

const HOUR_MS = 3_600_000;
const RANGES: Readonly<Record<NumericSetting, Range>> = {
  latencyMs: { wire: 'latency_ms', min: 0, max: HOUR_MS, whole: false },
  latencyJitterMs: { wire: 'latency_jitter_ms', min: 0, max: HOUR_MS, whole: false },
  outputTokens: { wire: 'output_tokens', min: 1, max: 1_000_000, whole: true },
  outputSigma: { wire: 'output_sigma', min: 0, max: 5, whole: false },
  seed: { wire: 'seed', min: 0, max: 2 ** 32 - 1, whole: true },
  maxConcurrency: { wire: 'max_concurrency', min: 0, max: 1_000_000, whole: true },
  retryAfterSec: { wire: 'retry_after_sec', min: 0, max: 86_400, whole: true },
  slots: { wire: 'slots', min: 0, max: 100_000, whole: true },
  maxQueue: { wire: 'max_queue', min: 0, max: 1_000_000, whole: true },
  stepBaseMs: { wire: 'step_base_ms', min: 0, max: HOUR_MS, whole: false },
  stepGrowthMs: { wire: 'step_growth_ms', min: 0, max: HOUR_MS, whole: false },
  prefillMsPerToken: { wire: 'prefill_ms_per_token', min: 0, max: HOUR_MS, whole: false },
  prefillTokensPerStep: {
    wire: 'prefill_tokens_per_step',
    min: 1,
    max: 1_000_000_000,
    whole: true,
  },
  cacheTokens: { wire: 'cache_tokens', min: 0, max: 100_000_000, whole: true },
  embeddingDimensions: { wire: 'embedding_dimensions', min: 1, max: 100_000, whole: true },
  errorRate: { wire: 'error_rate', min: 0, max: 1, whole: false },
  cutRate: { wire: 'cut_rate', min: 0, max: 1, whole: false },
  slowdown: { wire: 'slowdown', min: 1, max: 10_000, whole: false },
};
const SWITCHES: Readonly<Record<SwitchSetting, string>> = {
  stall: 'stall',
  notReady: 'not_ready',
  refuse: 'refuse',
};
const NUMERIC = Object.keys(RANGES) as NumericSetting[];
const SWITCHED = Object.keys(SWITCHES) as SwitchSetting[];
const NAMES = new Map<string, keyof SimulatorSettings>([
  ...NUMERIC.map((name) => [RANGES[name].wire, name] as const),
  ...SWITCHED.map((name) => [SWITCHES[name], name] as const),
  ['models', 'models'],
]);

/** The settings in the form of `/simulator/config`. */
export function settingsToWire(settings: SimulatorSettings): Record<string, unknown> {
  return Object.fromEntries([...NAMES].map(([wire, name]) => [wire, settings[name]]));
}

/** Replaces members of `settings`. @throws invalid_request for an unknown member or a value out of range */
export function changedSettings(settings: SimulatorSettings, patch: unknown): SimulatorSettings {
  if (!isJsonObject(patch)) {
    throw invalid(null, 'the settings must be a JSON object');
  }
  const changes: Partial<Record<keyof SimulatorSettings, unknown>> = {};
  for (const [wire, value] of Object.entries(patch)) {
    const name = NAMES.get(wire);
    if (name === undefined) {
      const known = [...NAMES.keys()].join(', ');
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
  for (const name of SWITCHED) {
    if (typeof settings[name] === 'boolean') continue;
    throw invalid(SWITCHES[name], `${SWITCHES[name]} must be true or false`);
  }
  const { models } = settings;
  if (!Array.isArray(models) || !models.every((model) => typeof model === 'string')) {
    throw invalid('models', 'models must be a list of names');
  }
  return settings as SimulatorSettings;
}
