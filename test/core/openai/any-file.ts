import fc from 'fast-check';
import { ENDPOINTS, requestLine, similarLines } from './request-lines';
import { RULES } from './scan';

const MAX_LINES = 20;

/** The pieces of a file that end at some of its positions. */
export function chunksOf(file: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = cuts.map((share) => Math.floor(share * file.length)).sort((a, b) => a - b);
  return [...ends, file.length].map((end, i) => file.subarray(ends[i - 1] ?? 0, end));
}

const anyRules = fc.record({
  endpoint: fc.constantFrom(...ENDPOINTS),
  maxLineBytes: fc.constantFrom(100, 300, 1_000, 1 << 20, 1 << 20, 1 << 20),
  maxRequests: fc.constantFrom(5, 50_000, 50_000),
  maxInputs: fc.constantFrom(2, 50_000, 50_000),
  singleModel: fc.boolean(),
  json: fc.record({
    maxDepth: fc.constantFrom(4, 6, 10_000, Infinity),
    maxTokens: fc.constantFrom(300, 500, 800, 10_000_000, Infinity),
  }),
});
/** Lines of any shapes, some of which are repeated. */
const anyLines = (endpoint: string) =>
  fc.oneof(
    fc.array(requestLine(endpoint), { minLength: 1, maxLength: MAX_LINES, size: 'max' }),
    similarLines(endpoint, MAX_LINES),
    fc
      .tuple(similarLines(endpoint, MAX_LINES), similarLines(endpoint, MAX_LINES))
      .map(([a, b]) => a.flatMap((line, i) => [line, b[i] ?? line])),
  );
/** Rules, lines, where the file is cut (shares of its length), and its line end. */
export const anyFile = anyRules.chain((rules) =>
  fc.tuple(
    fc.constant({ ...RULES, ...rules }),
    anyLines(rules.endpoint),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
    fc.constantFrom('\n', '\r\n'),
  ),
);
