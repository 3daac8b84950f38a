import { InvalidArgumentError, Option } from 'commander';
import { createLogger } from '../../platform/logger';
import { simulatorOptions, startSimulator, type SimulatorOptions } from '../../simulator/main';
import { serve } from './serve';

const NUMBERS: Readonly<Record<string, { readonly key: keyof SimulatorOptions; text: string }>> = {
  'port <n>': { key: 'port', text: 'port to listen on' },
  'latency-ms <ms>': { key: 'latencyMs', text: 'latency of an answer, ms; not with --slots' },
  'latency-jitter-ms <ms>': {
    key: 'latencyJitterMs',
    text: 'random deviation of the latency in both directions, ms',
  },
  'output-tokens <n>': { key: 'outputTokens', text: 'tokens of the median answer' },
  'output-sigma <sigma>': {
    key: 'outputSigma',
    text: 'spread of the lengths of answers (lognormal); 0 makes them equal',
  },
  'seed <n>': { key: 'seed', text: 'chooses another set of lengths' },
  'error-rate <share>': {
    key: 'errorRate',
    text: 'share of requests that fail with 500, from 0 to 1',
  },
  'max-concurrency <n>': {
    key: 'maxConcurrency',
    text: 'concurrent requests before it answers 429; 0 for no limit',
  },
};

/** Flags of the engine, which needs `--slots`. */
const ENGINE_NUMBERS: typeof NUMBERS = {
  'slots <n>': {
    key: 'slots',
    text: 'generate answers token by token, as an inference engine with so many slots; 0 for none',
  },
  'max-queue <n>': { key: 'maxQueue', text: 'requests that wait for a slot before it answers 429' },
  'step-base-ms <ms>': { key: 'stepBaseMs', text: 'time of a step of the engine, ms' },
  'step-growth-ms <ms>': {
    key: 'stepGrowthMs',
    text: 'time that each running request adds to a step, ms',
  },
  'prefill-ms-per-token <ms>': {
    key: 'prefillMsPerToken',
    text: 'time that each prompt token adds to a step, unless it is cached, ms',
  },
  'prefill-tokens-per-step <n>': {
    key: 'prefillTokensPerStep',
    text: 'prompt tokens that one step computes at most',
  },
  'cache-tokens <n>': { key: 'cacheTokens', text: 'tokens that the prefix cache holds' },
};

/** Flags of `nightshift simulator`, with the simulator's own defaults. */
export function simulatorFlags(): Option[] {
  const numbers = Object.entries({ ...NUMBERS, ...ENGINE_NUMBERS }).map(([flag, { key, text }]) =>
    new Option(`--${flag}`, text).default(simulatorOptions[key]).argParser(parseNumber),
  );
  const host = new Option('--host <address>', 'address to listen on').default(
    simulatorOptions.host,
  );
  const audioPort = new Option(
    '--audio-port <n>',
    'port of an audio worker (gRPC), which speaks and transcribes without an engine',
  ).argParser(parseNumber);
  return [host, ...numbers, audioPort];
}

/** `nightshift simulator`: serves until a signal. */
export async function runSimulatorCommand(flags: Partial<SimulatorOptions>): Promise<void> {
  const logger = createLogger({ level: 'info', format: 'auto' }, 'simulator');
  await serve({ name: 'simulator', logger, start: () => startSimulator(flags) });
}

function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('expected a number');
}
