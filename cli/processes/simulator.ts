import { InvalidArgumentError, Option } from 'commander';
import { createLogger } from '../../platform/logger';
import { simulatorOptions, startSimulator, type SimulatorOptions } from '../../simulator/main';
import { serve } from './serve';

const NUMBERS: Readonly<Record<string, { readonly key: keyof SimulatorOptions; text: string }>> = {
  'port <n>': { key: 'port', text: 'port to listen on' },
  'latency-ms <ms>': { key: 'latencyMs', text: 'latency of an answer, ms' },
  'latency-jitter-ms <ms>': {
    key: 'latencyJitterMs',
    text: 'random deviation of the latency in both directions, ms',
  },
  'output-tokens <n>': { key: 'outputTokens', text: 'tokens per answer' },
  'error-rate <share>': {
    key: 'errorRate',
    text: 'share of requests that fail with 500, from 0 to 1',
  },
  'max-concurrency <n>': {
    key: 'maxConcurrency',
    text: 'concurrent requests before it answers 429; 0 for no limit',
  },
};

/** Flags of `nightshift simulator`, with the simulator's own defaults. */
export function simulatorFlags(): Option[] {
  const numbers = Object.entries(NUMBERS).map(([flag, { key, text }]) =>
    new Option(`--${flag}`, text).default(simulatorOptions[key]).argParser(parseNumber),
  );
  const host = new Option('--host <address>', 'address to listen on').default(
    simulatorOptions.host,
  );
  return [host, ...numbers];
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
