import fc from 'fast-check';
import {
  HEAVY_TOKENS,
  createJsonCheck,
  createJsonGuard,
  type JsonFault,
} from '../../../core/openai/json-check';

const UNLIMITED = { maxDepth: 1_000, maxTokens: 1_000_000 };

/** The cost of a value, counted on the parsed value. */
function costOf(value: unknown): { depth: number; tokens: number } {
  if (typeof value === 'string') return { depth: 0, tokens: HEAVY_TOKENS };
  if (typeof value !== 'object' || value === null) return { depth: 0, tokens: 0 };
  const children = Object.values(value).map(costOf);
  const own = Array.isArray(value) ? 0 : children.length;
  const commas = Math.max(0, children.length - 1);
  return {
    depth: 1 + Math.max(0, ...children.map(({ depth }) => depth)),
    tokens: children.reduce((sum, { tokens }) => sum + tokens, (1 + own) * HEAVY_TOKENS + commas),
  };
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function faultOf(text: string, limits = UNLIMITED): JsonFault | null {
  return createJsonCheck(limits)(Buffer.from(text));
}

/** Pieces of JSON, whole and broken. */
const piece = fc.constantFrom(
  ...'{ } [ ] , : " \\ " "a" "a": {} [] 0 -0 01 1.5 1. .5 1e5 1E+5 1e- - + true false null tru nul'.split(
    ' ',
  ),
  ...[' ', '\t', '\n', '\r', '\u00a0', '\ufeff', '\v', '\0', '"\\u00e9"', '"\\u12"', '"\\x"'],
  ...['"é😀"', '"\\ud800"', '"a\nb"', '"\\\\"', '"\\""', '"\u007f"', 'Infinity', 'NaN'],
);

describe('the check of JSON', () => {
  it('accepts what JSON.parse accepts, for text made of random pieces', () => {
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (json) => {
        expect(faultOf(json)).toBe(parses(json) ? null : 'invalid');
      }),
      { numRuns: 6_000, seed: 11 },
    );
  });

  it('accepts what JSON.parse accepts, for values with one changed byte', () => {
    const changed = fc.tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.oneof(piece, fc.constant('')));
    fc.assert(
      fc.property(changed, ([json, place, change]) => {
        const at = place % (json.length + 1);
        const text = json.slice(0, at) + change + json.slice(at + (place % 2));
        // Half a surrogate pair cannot be encoded in UTF-8.
        fc.pre(Buffer.from(text).toString() === text);
        expect(faultOf(json)).toBeNull();
        expect(faultOf(text)).toBe(parses(text) ? null : 'invalid');
      }),
      { numRuns: 2_000, seed: 12 },
    );
  });

  it('counts depth and tokens exactly', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isPretty) => {
        const text = JSON.stringify(value, null, isPretty ? 1 : 0);
        // Serialized and parsed again, so that the value has exactly the tokens of the text.
        const { depth, tokens } = costOf(JSON.parse(text));
        expect(faultOf(text, { maxDepth: depth, maxTokens: tokens })).toBeNull();
        if (depth === 0) return;
        expect(faultOf(text, { maxDepth: depth - 1, maxTokens: tokens })).toBe('too_deep');
        expect(faultOf(text, { maxDepth: depth, maxTokens: tokens - 1 })).toBe('too_many_tokens');
      }),
      { numRuns: 1_000, seed: 13 },
    );
  });

  it('is skipped only if no limit can be exceeded', () => {
    const limits = { maxDepth: 3, maxTokens: 200 };
    const check = createJsonCheck(limits);
    const guard = createJsonGuard(limits);
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (json) => {
        expect(guard(Buffer.from(json))).toBe(check(Buffer.from(json)));
      }),
      { numRuns: 2_000, seed: 14 },
    );
  });

  it('reads only its range', () => {
    const bytes = Buffer.from('x[1,{"a":"]"}]\n"');
    const check = createJsonCheck(UNLIMITED);
    expect(check(bytes, 1, 14)).toBeNull();
    for (let end = 1; end < 14; end++) expect(check(bytes, 1, end)).toBe('invalid');
    expect(check(bytes, 1, 15)).toBeNull();
    expect(check(bytes, 1, 16)).toBe('invalid');
  });

  it.each([
    ['8 MB of [', '['.repeat(8_000_000), 'too_deep'],
    ['nested objects', '{"a":'.repeat(1_600_000), 'too_deep'],
    ['arrays side by side', `[${'[],'.repeat(2_000_000)}1]`, 'too_many_tokens'],
    ['numbers side by side', `[${'1,'.repeat(2_000_000)}1]`, 'too_many_tokens'],
  ])('stops at a limit: %s', (_name, text, fault) => {
    expect(faultOf(text, { maxDepth: 128, maxTokens: 1_000_000 })).toBe(fault);
  });
});
