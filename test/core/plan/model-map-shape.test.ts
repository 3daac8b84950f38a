import { encodeModelMap, parseModelMap, type ModelMap } from '../../../core/plan/model-map';

const map: ModelMap = {
  version: 1,
  nonce: '0123456789abcdef',
  line_count: 3,
  model_to_safe: { m: 'm' },
  safe_to_model: { m: 'm' },
  entries: { m: 2 },
  unrouted: { other: 1 },
};

const refused = expect.objectContaining({ code: 'plan_unreadable' }) as Error;

describe('parsing model_map.json', () => {
  it.each(Object.keys(map))('fails if %s is missing', (member) => {
    const bytes = encodeModelMap({ ...map, [member]: undefined });
    expect(() => parseModelMap(bytes)).toThrow(refused);
  });

  it.each([
    ['nonce', 7],
    ['line_count', 1.5],
    ['line_count', '3'],
    ['model_to_safe', { m: 1 }],
    ['safe_to_model', { m: null }],
    ['safe_to_model', []],
    ['entries', { m: -1 }],
    ['entries', [2]],
    ['unrouted', { other: '1' }],
    ['undecided', 'm'],
    ['undecided', ['m', 1]],
  ])('fails if %s is %j', (member, value) => {
    const bytes = Buffer.from(JSON.stringify({ ...map, [member]: value }));
    expect(() => parseModelMap(bytes)).toThrow(refused);
  });
});
