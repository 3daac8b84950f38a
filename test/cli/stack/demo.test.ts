import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProgram } from '../../../cli/program';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-demo-input-'))));
afterAll(() => rmSync(folder, { recursive: true }));

it.each([
  ['does not exist', null, 'there is no file'],
  ['is empty', '', 'is empty'],
  ['is not JSON Lines', '\n{"custom_id":\n', 'line 2 is not JSON'],
  ['names no endpoint', '{"custom_id":"a"}\n', 'has no "url"'],
])('the demo refuses an input that %s before it starts anything', async (_what, text, expected) => {
  const input = join(folder, 'input.jsonl');
  rmSync(input, { force: true });
  if (text !== null) writeFileSync(input, text);
  const dataDir = join(folder, 'data');
  const demo = ['node', 'nightshift', 'demo', '--input', input, '--data-dir', dataDir];
  await expect(createProgram().parseAsync(demo)).rejects.toThrow(expected);
  expect(existsSync(dataDir)).toBe(false);
});
