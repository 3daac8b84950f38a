import { outputLength } from '../engine/output-length';
import type { ModelRequest } from '../request';
import type { SimulatorSettings } from '../settings';
import { nextNumber, WordSequence } from '../words';
import type { Output } from './generation';

/** Decides one text of an answer. @param limit the request's own limit of tokens */
export function outputOf(
  { seed }: ModelRequest,
  settings: SimulatorSettings,
  limit: unknown,
): Output {
  const { outputTokens: median, outputSigma: sigma } = settings;
  const wanted = outputLength(seed, { median, sigma, seed: settings.seed });
  const tokens = Math.min(wanted, positiveOr(limit, wanted));
  return { seed, tokens, finish: tokens < wanted ? 'length' : 'stop' };
}

/** The whole text of an output. */
export function textOf({ seed, tokens }: Output): string {
  return new WordSequence(seed).take(tokens);
}

/** `value` if it is a whole number above 0, else `fallback`. */
export function positiveOr(value: unknown, fallback: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : fallback;
}

/** Whether `value` is a list of at least one text, and of nothing else. */
export function isListOfText(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
}

/** The random part of an answer's id: 16 hex digits that depend only on the request. */
export function hexOf(seed: number): string {
  return seed.toString(16).padStart(8, '0') + nextNumber(seed).toString(16).padStart(8, '0');
}

/** Unix time that depends on the request, not on the clock: equal requests get equal answers at any time. */
export function createdOf(seed: number): number {
  return 1_735_689_600 + (seed % 86_400);
}
