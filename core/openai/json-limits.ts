import { HEAVY_TOKENS, type JsonFault, type JsonLimits } from './json-check';

/** The settings that limit one line of an input file. */
const SETTINGS = {
  maxDepth: 'limits.max_json_depth',
  maxTokens: 'limits.max_json_tokens',
} as const;

/** Which limit a line of an input file exceeds, and what to do. */
export function lineOverLimit(fault: Exclude<JsonFault, 'invalid'>, limits: JsonLimits): string {
  if (fault === 'too_deep') {
    return (
      `This line nests objects and arrays more than ${limits.maxDepth} deep. ` +
      `Nest them less deeply, or raise ${SETTINGS.maxDepth}.`
    );
  }
  return (
    `This line has more than ${limits.maxTokens} JSON tokens: a comma counts 1, an object, an array, ` +
    `a member, or a string counts ${HEAVY_TOKENS}. Split the request into several, or raise ${SETTINGS.maxTokens}.`
  );
}
