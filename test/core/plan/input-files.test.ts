import { encodeInputFiles, parseInputFiles } from '../../../core/plan/input-files';

/** The list of files that requests of a batch name. */

const FILES = new Map([
  ['file-1', { key: 'files/t/file-1', bytes: 7, filename: 'ä.wav' }],
  ['__proto__', { key: 'files/t/p', bytes: 0, filename: 'p' }],
]);

it('reads what it writes', () => {
  expect(parseInputFiles(encodeInputFiles(FILES))).toEqual(FILES);
});

it('keeps the names of the stored object', () => {
  const [first] = [...FILES];
  expect(JSON.parse(encodeInputFiles(new Map([first!])).toString())).toEqual({
    version: 1,
    files: { 'file-1': { key: 'files/t/file-1', size: 7, name: 'ä.wav' } },
  });
});

it.each([
  '',
  '{',
  '[]',
  '{"version":2,"files":{}}',
  '{"version":1}',
  '{"version":1,"files":{"a":{}}}',
])('refuses %j as damaged', (text) => {
  expect(() => parseInputFiles(Buffer.from(text))).toThrow('files.json is damaged');
});
