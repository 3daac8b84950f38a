import type { EngineSettings } from '../../../simulator/engine/engine';

/** A kind of model server, and the requests that it gets. */
export interface EngineShape {
  readonly engine: EngineSettings;
  readonly promptTokens: { readonly median: number; readonly sigma: number };
  readonly outputTokens: { readonly median: number; readonly sigma: number };
}

const COMMON = { maxQueue: 10_000, prefillTokensPerStep: 2_048, cacheTokens: 0 };

/** Shapes on which rules of flow control must hold: a rule that helps only one of them is tuned to it. */
export const SHAPES = {
  /** Few places, answers of about a second. */
  chat: {
    engine: {
      ...COMMON,
      ...{ slots: 16, stepBaseMs: 25, stepGrowthMs: 0.3, prefillMsPerToken: 0.05 },
    },
    promptTokens: { median: 200, sigma: 0.5 },
    outputTokens: { median: 32, sigma: 0.4 },
  },
  /** The engines of `nightshift demo --scene flow`. */
  demo: {
    engine: {
      ...COMMON,
      ...{ slots: 32, stepBaseMs: 30, stepGrowthMs: 0.4, prefillMsPerToken: 0.02 },
    },
    promptTokens: { median: 200, sigma: 0.05 },
    outputTokens: { median: 20, sigma: 0.4 },
  },
  /** More places, answers of about a second. */
  scene: {
    engine: {
      ...COMMON,
      ...{ slots: 64, stepBaseMs: 20, stepGrowthMs: 0.3, prefillMsPerToken: 0.02 },
    },
    promptTokens: { median: 200, sigma: 0.5 },
    outputTokens: { median: 24, sigma: 0.4 },
  },
  /** Fast prefill, slow decode, many places: a large accelerator. */
  large: {
    engine: {
      ...COMMON,
      ...{ slots: 96, stepBaseMs: 12, stepGrowthMs: 0.15, prefillMsPerToken: 0.01 },
    },
    promptTokens: { median: 600, sigma: 0.8 },
    outputTokens: { median: 120, sigma: 0.6 },
  },
  /** Long answers: a place becomes free only every now and then. */
  long: {
    engine: {
      ...COMMON,
      ...{ slots: 32, stepBaseMs: 15, stepGrowthMs: 0.2, prefillMsPerToken: 0.05 },
    },
    promptTokens: { median: 150, sigma: 0.5 },
    outputTokens: { median: 500, sigma: 0.5 },
  },
  /** Long prompts, short answers: most of the time is prefill. */
  prompts: {
    engine: {
      ...COMMON,
      ...{ slots: 24, stepBaseMs: 15, stepGrowthMs: 0.2, prefillMsPerToken: 0.04 },
    },
    promptTokens: { median: 1_500, sigma: 0.7 },
    outputTokens: { median: 60, sigma: 0.4 },
  },
} as const satisfies Record<string, EngineShape>;
