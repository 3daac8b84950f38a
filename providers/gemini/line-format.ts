import { isJsonObject } from '../../core/openai/json-object';
import { TranslationScope, translating } from '../chat/scope';
import type { AnswerContext } from '../google-models/answer';
import { lineResultOf } from '../google-models/line-result';
import { generateContentRequest } from '../google-models/request';
import type { EncodedLine, LineResult, LineToEncode } from '../provider';

/**
 * Translates a line of the input into `{"key", "request"}`. The model is in the URL of the create, not in the line.
 * Pure (docs/design/providers.md#gemini-api).
 */
export function encodeGeminiLine({ wireId, body, translation }: LineToEncode): EncodedLine {
  const { dropParams, extraBody } = translation;
  return translating((): EncodedLine => {
    const scope = new TranslationScope(dropParams);
    const value: unknown = JSON.parse(body.toString('utf8'));
    const members = isJsonObject(value) ? value : scope.refuse('body', 'expected an object');
    const request = generateContentRequest(members, scope, extraBody);
    return { kind: 'line', bytes: Buffer.from(JSON.stringify({ key: wireId, request })) };
  });
}

/** Reads `{"key", "response" | "error"}`; null if the line is no result. Pure. */
export function readGeminiLine(
  line: Buffer,
  context: Omit<AnswerContext, 'wireId'>,
  mask: (text: string) => string,
): LineResult | null {
  const result = parsed(line);
  if (!isJsonObject(result) || typeof result['key'] !== 'string') return null;
  const { key: wireId, response, error } = result;
  // Some versions of the API put the error of a line where its response belongs.
  const nested: unknown = isJsonObject(response) ? response['error'] : undefined;
  return lineResultOf({ response, error: error ?? nested }, { ...context, wireId }, mask);
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch {
    return null;
  }
}
