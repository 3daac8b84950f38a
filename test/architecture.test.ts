import fs from 'node:fs';
import path from 'node:path';
import { houseViolations, ROOMS } from './support/house-rules';

const ROOT = path.resolve(__dirname, '..');
const ELSEWHERE = ['test', 'bench', 'examples'];

describe('the house', () => {
  it('is in order: floors, purity, names, lengths, doc comments', () => {
    expect(houseViolations(sources())).toEqual([]);
  });

  it('has a room for every top-level folder with sources, and no src/', () => {
    const withSources = new Set([...sources().keys()].map((file) => file.split('/')[0]));
    const known = [...Object.keys(ROOMS), ...ELSEWHERE];
    expect([...withSources].filter((room) => !known.includes(room ?? ''))).toEqual([]);
    expect(fs.existsSync(path.join(ROOT, 'src'))).toBe(false);
  });

  it('lets rooms import downwards only', () => {
    const upwards = Object.entries(ROOMS).flatMap(([room, { floor, values }]) =>
      values
        .filter((name) => name !== 'workflows/contract')
        .filter((name) => (ROOMS[name.split('/')[0] ?? '']?.floor ?? floor) >= floor)
        .map((name) => `${room} > ${name}`),
    );
    expect(upwards).toEqual([]);
  });
});

describe('the guard of the house', () => {
  it.each<[string, Record<string, string>, string]>([
    ['a value from a higher floor', { 'core/a.ts': "import '../api/b';" }, 'may not import values'],
    [
      'a sibling of the same floor',
      { 'storage/a.ts': "import { b } from '../inference/b'; b;" },
      'storage/a.ts:1: storage/ may not import values of inference/b',
    ],
    [
      'a value where only types may pass',
      { 'activities/a.ts': "import { b } from '../storage/b'; b;" },
      'activities/ may not import values of storage/b',
    ],
    [
      'a type where not even types may pass',
      { 'workflows/a.ts': "import type { B } from '../storage/b';" },
      'workflows/ may not import types of storage/b',
    ],
    [
      'a type query where not even types may pass',
      { 'core/a.ts': "let b: import('../storage/b').B;" },
      'core/ may not import types of storage/b',
    ],
    [
      'a dynamic import',
      { 'embedded/a.ts': "void import('../api/main');" },
      'embedded/ may not import values of api/main',
    ],
    [
      'a require',
      { 'embedded/a.ts': "require('../api/main');" },
      'embedded/ may not import values of api/main',
    ],
    [
      'a re-export',
      { 'core/a.ts': "export * from '../platform/units';" },
      'core/ may not import values of platform/units',
    ],
    [
      'another module of a room that shows only one',
      { 'client/a.ts': "import { b } from '../workflows/batch'; b;" },
      'client/ may not import values of workflows/batch',
    ],
    [
      'workflows loaded by the worker otherwise than by path',
      { 'workers/a.ts': "import { b } from '../workflows/batch'; b;" },
      'workers/ may not import values of workflows/batch',
    ],
    ['Node in core', { 'core/a.ts': "import 'node:fs';" }, 'may not import values of node:fs'],
    ['Node in workflows', { 'workflows/a.ts': "import 'node:fs';" }, 'of node:fs'],
    ['Node without its prefix', { 'api/a.ts': "import 'fs';" }, 'values of fs'],
    ['a foreign package', { 'core/a.ts': "import 'zod';" }, 'values of zod'],
    ['the cli', { 'api/a.ts': "import '../cli/run';" }, 'nobody imports cli/'],
    ['the cli from a bench', { 'bench/a.ts': "import '../cli/run';" }, 'nobody imports cli/'],
    ['the tests', { 'api/a.ts': "import '../test/x';" }, 'nobody imports test/'],
    ['src', { 'src/a.ts': '' }, 'there is no src/'],
    ['the clock in core', { 'core/a.ts': 'Date.now();' }, 'core/a.ts:1: Date.now has no place'],
    ['the present in core', { 'core/a.ts': 'new Date();' }, 'new Date has no place'],
    ['chance in core', { 'core/a.ts': 'Math.random();' }, 'Math.random has no place'],
    ['Buffer in the sandbox', { 'core/dispatch/a.ts': 'Buffer.alloc(1);' }, 'Buffer has no place'],
    ['the environment', { 'api/a.ts': "process.env['A'];" }, 'process.env has no place'],
    ['an undocumented export', { 'core/a.ts': 'export const a = 1;' }, 'export a has no doc'],
    ['a long file', { 'core/a.ts': '\n'.repeat(400) }, '401 lines, at most 400'],
    ['a drawer', { 'core/string-utils.ts': '' }, 'a drawer for everything'],
    ['a camel in a file name', { 'core/lineScanner.ts': '' }, 'kebab-case'],
    [
      'a cycle of modules',
      { 'core/a.ts': "import './b';", 'core/b.ts': "import './a';" },
      'cycle of modules: core/a.ts > core/b.ts > core/a.ts',
    ],
    [
      'a cycle of rooms',
      { 'core/a.ts': "import '../api/x';", 'api/b.ts': "import '../core/y';" },
      'cycle of rooms: core > api > core',
    ],
  ])('sees %s', (_what, files, sentence) => {
    const found = houseViolations(new Map(Object.entries(files)));
    expect(found).toEqual(expect.arrayContaining([expect.stringContaining(sentence)]));
  });

  it('lets pass what the table allows', () => {
    const files = {
      'workflows/contract.ts': '/** Name. */\nexport const QUEUE = 1;',
      'workflows/a.ts': "import type { B } from '../activities/b';\nimport '@temporalio/workflow';",
      'client/a.ts': "import '../workflows/contract';\nimport type { A } from '../workflows/a';",
      'activities/a.ts': "import { type S } from '../storage/s';\nimport 'node:fs';",
      'workers/a.ts': "require.resolve('../workflows');\nimport '../activities/a';",
      'core/journal/a.ts': 'Buffer.alloc(1); new Date(0);',
      'core/a.ts': 'export interface RunOptions {}',
      'platform/config.ts': "process.env['A'];",
      'test/a.ts': "import '../cli/run';",
    };
    expect(houseViolations(new Map(Object.entries(files)))).toEqual([]);
  });
});

/** Text of every .ts file of the repository, build outputs and installed packages aside. */
function sources(): Map<string, string> {
  return new Map(
    filesBelow('').map((file) => [file, fs.readFileSync(path.join(ROOT, file), 'utf8')]),
  );
}

function filesBelow(folder: string): string[] {
  return fs.readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return isForeign(entry.name) ? [] : filesBelow(name);
    return entry.name.endsWith('.ts') ? [name] : [];
  });
}

function isForeign(folder: string): boolean {
  return folder.startsWith('.') || ['node_modules', 'dist', 'coverage'].includes(folder);
}
