import { encodeModelMap, parseModelMap, type ModelMap } from '../../../core/plan/model-map';

const map: ModelMap = {
  version: 1,
  nonce: '0123456789abcdef',
  line_count: 3,
  model_to_safe: Object.fromEntries([['__proto__', '__proto__']]),
  safe_to_model: Object.fromEntries([['__proto__', '__proto__']]),
  entries: Object.fromEntries([['__proto__', 2]]),
  unrouted: { 'nobody\ud800': 1 },
};

describe('model_map.json', () => {
  it('is read back unchanged with any model names', () => {
    const parsed = parseModelMap(encodeModelMap(map));
    expect(parsed).toEqual(map);
    expect(Object.entries(parsed.entries)).toEqual([['__proto__', 2]]);
    expect(Object.keys(parsed.unrouted)).toEqual(['nobody\ud800']);
  });

  it.each([
    ['', 'no JSON'],
    ['[]', 'an array'],
    [JSON.stringify({ ...map, version: 2 }), 'another version'],
    [JSON.stringify({ ...map, line_count: -1 }), 'a negative count'],
    [JSON.stringify({ ...map, entries: { a: 'x' } }), 'entries that are no numbers'],
    [JSON.stringify({ ...map, unrouted: undefined }), 'a missing member'],
  ])('is refused as plan_unreadable: %s (%s)', (text) => {
    expect(() => parseModelMap(Buffer.from(text))).toThrow(
      expect.objectContaining({ code: 'plan_unreadable' }),
    );
  });
});
