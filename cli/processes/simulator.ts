import { InvalidArgumentError, Option } from 'commander';
import { createLogger } from '../../platform/logger';
import { simulatorOptions, startSimulator, type SimulatorOptions } from '../../simulator/main';
import { serve } from './serve';

const NUMBERS: Readonly<Record<string, { readonly key: keyof SimulatorOptions; text: string }>> = {
  'port <n>': { key: 'port', text: 'port to listen on' },
  'latency-ms <ms>': { key: 'latencyMs', text: 'time of an answer' },
  'latency-jitter-ms <ms>': { key: 'latencyJitterMs', text: 'random part of it, either way' },
  'output-tokens <n>': { key: 'outputTokens', text: 'tokens of an answer' },
  'error-rate <share>': { key: 'errorRate', text: 'share of answers that are 500, 0 to 1' },
  'max-concurrency <n>': {
    key: 'maxConcurrency',
    text: 'requests at once before 429; 0: no bound',
  },
};

/** Flags of `nightshift simulator`, named after the simulator's options, with their defaults. */
export function simulatorFlags(): Option[] {
  const numbers = Object.entries(NUMBERS).map(([flag, { key, text }]) =>
    new Option(`--${flag}`, text).default(simulatorOptions[key]).argParser(parseNumber),
  );
  const host = new Option('--host <address>', 'address to bind to').default(simulatorOptions.host);
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
