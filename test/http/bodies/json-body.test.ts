import { parseJsonBody } from '../../../http/bodies/json-body';

afterEach(() => jest.restoreAllMocks());

const refused = /nested too deeply or has too many members/;

it.each([
  ['a megabyte of [', '['.repeat(1_000_000)],
  ['nested objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
  ['empty arrays', `{"a":[${'[],'.repeat(300_000)}1]}`],
  ['numbers', `{"a":[${'1,'.repeat(500_000)}1]}`],
  ['strings', `{"a":[${'"abc",'.repeat(150_000)}1]}`],
  ['keys', `{${Array.from({ length: 80_000 }, (_, i) => `"${i}":1`).join()}}`],
])('a body is refused before it is parsed: %s', (_name, text) => {
  const parse = jest.spyOn(JSON, 'parse');
  expect(() => parseJsonBody(Buffer.from(text))).toThrow(refused);
  expect(parse.mock.calls.length).toBe(0);
});

it('the largest useful body is accepted: 10,000 parts of an upload', () => {
  const part_ids = Array.from({ length: 10_000 }, (_, i) => `part_${String(i).padStart(32, '0')}`);
  expect(parseJsonBody(Buffer.from(JSON.stringify({ part_ids })))).toEqual({ part_ids });
});
