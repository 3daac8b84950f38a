import fs from 'node:fs';
import path from 'node:path';
import { houseViolations, ROOMS } from './architecture/house-rules';
import { factsOf } from './architecture/module-facts';
import { unusedExports } from './architecture/unused-exports';

const ROOT = path.resolve(__dirname, '..');
const ELSEWHERE = ['test', 'bench', 'examples'];
/** Exports that no product code imports, each with the reason why it is an export nevertheless. */
const USED_OTHERWISE: Readonly<Record<string, string>> = {
  'core/dispatch/pool/admitted.ts RequestDropped': 'for callers of the queue outside the gateway',
  'core/dispatch/pool/admitted.ts admitted': 'for callers of the queue outside the gateway',
  'core/openai/result-line.ts LINE_ERROR_CODES': 'a test compares docs/errors.md with it',
  'core/delegation/job-steps.ts JOB_STEPS': 'a test compares the rows with it',
  'core/delegation/job-steps.ts JOB_OUTCOMES': 'tests go through all of them',
  'embedded/binaries/go-program.ts findGoProgram': 'test/run.js prepares the tests with it',
  'embedded/binaries/versitygw.ts VERSITYGW': 'test/run.js prepares the tests with it',
  'client/failure-converter.ts failureConverter': 'Temporal loads it by path',
  'embedded/start-stack.ts startStack': 'package.json exports it as nightshift/testing',
};

describe('the source tree', () => {
  it('keeps the rules of floors, purity, names, lengths, cycles and doc comments', () => {
    expect(houseViolations(sources())).toEqual([]);
  });

  it('has a room for every top-level folder with sources, and no src/', () => {
    const withSources = new Set([...sources().keys()].map((file) => file.split('/')[0]));
    const known = [...Object.keys(ROOMS), ...ELSEWHERE];
    expect([...withSources].filter((room) => !known.includes(room ?? ''))).toEqual([]);
    expect(fs.existsSync(path.join(ROOT, 'src'))).toBe(false);
  });

  it('lets rooms import values and types of lower floors only', () => {
    const upwards = Object.entries(ROOMS).flatMap(([room, { floor, values, types }]) =>
      [...values, ...types]
        .filter((name) => (ROOMS[name.split('/')[0] ?? '']?.floor ?? floor) >= floor)
        .map((name) => `${room} > ${name}`),
    );
    expect(upwards).toEqual([]);
  });

  it('exports nothing that only tests use', () => {
    const modules = new Map(
      [...sources(), ...filesBelow('cli', '.js').map(withText)]
        .filter(([file]) => !file.startsWith('test/'))
        .map(([file, text]) => [file, factsOf(file, text)]),
    );
    const unused = unusedExports(modules, isProduct).filter(
      ({ file, name }) => !isEntry(file) && !(`${file} ${name}` in USED_OTHERWISE),
    );
    expect(unused).toEqual([]);
  });
});

describe('the check of the house rules', () => {
  it.each<[string, Record<string, string>, string]>([
    ['a value from a higher floor', { 'core/a.ts': "import '../api/b';" }, 'may not import values'],
    [
      'a value from another room on the same floor',
      { 'storage/a.ts': "import { b } from '../inference/b'; b;" },
      'storage/a.ts:1: storage/ may not import values of inference/b',
    ],
    [
      'a value of a room whose types alone are allowed',
      { 'activities/a.ts': "import { b } from '../storage/b'; b;" },
      'activities/ may not import values of storage/b',
    ],
    [
      'a type of a room that is not allowed',
      { 'workflows/a.ts': "import type { B } from '../storage/b';" },
      'workflows/ may not import types of storage/b',
    ],
    [
      'a type query to a room that is not allowed',
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
      'a second module of a room that offers only one',
      { 'client/a.ts': "import { b } from '../workflows/batch'; b;" },
      'client/ may not import values of workflows/batch',
    ],
    [
      'workflows that the worker imports instead of naming their path',
      { 'workers/a.ts': "import { b } from '../workflows/batch'; b;" },
      'workers/ may not import values of workflows/batch',
    ],
    ['Node in core', { 'core/a.ts': "import 'node:fs';" }, 'may not import values of node:fs'],
    ['Node in workflows', { 'workflows/a.ts': "import 'node:fs';" }, 'of node:fs'],
    ['Node without its prefix', { 'api/a.ts': "import 'fs';" }, 'values of fs'],
    ['a foreign package', { 'core/a.ts': "import 'zod';" }, 'values of zod'],
    ['an import of the cli', { 'api/a.ts': "import '../cli/run';" }, 'only tests import cli/'],
    [
      'an import of the cli from a bench',
      { 'bench/a.ts': "import '../cli/run';" },
      'only tests import cli/',
    ],
    ['an import of a test', { 'api/a.ts': "import '../test/x';" }, 'only tests import test/'],
    ['a folder src', { 'src/a.ts': '' }, 'there is no src/'],
    ['a clock in core', { 'core/a.ts': 'Date.now();' }, 'core/a.ts:1: Date.now is not allowed'],
    ['the current date in core', { 'core/a.ts': 'new Date();' }, 'new Date is not allowed'],
    ['randomness in core', { 'core/a.ts': 'Math.random();' }, 'Math.random is not allowed'],
    [
      'Buffer in the sandbox',
      { 'core/dispatch/a.ts': 'Buffer.alloc(1);' },
      'Buffer is not allowed',
    ],
    [
      'a read of the environment',
      { 'api/a.ts': "process.env['A'];" },
      'process.env is not allowed',
    ],
    [
      'I/O in a file that translates',
      { 'providers/openai/result-line.ts': "import 'node:fs';" },
      'providers/openai/result-line.ts > node:fs: a pure file does no I/O',
    ],
    [
      'I/O that a file that translates reaches through another one',
      {
        'providers/chat/scope.ts': "import '../read-file';",
        'providers/read-file.ts': "import 'undici';",
      },
      'providers/chat/scope.ts > providers/read-file.ts > undici: a pure file does no I/O',
    ],
    [
      'a clock in a file that translates',
      { 'providers/openai/result-line.ts': 'Date.now();' },
      'Date.now is not allowed',
    ],
    ['an undocumented export', { 'core/a.ts': 'export const a = 1;' }, 'export a has no doc'],
    ['a long file', { 'core/a.ts': '\n'.repeat(400) }, '401 lines, at most 400'],
    [
      'a name under which anything would fit',
      { 'core/string-utils.ts': '' },
      'does not say what is in it',
    ],
    ['a capital letter in a file name', { 'core/lineScanner.ts': '' }, 'kebab-case'],
    [
      'a long function',
      { 'test/a.ts': `function a() {${'\n  b;'.repeat(60)}\n}` },
      'test/a.ts:1: function of 62 lines, at most 60',
    ],
    [
      'a cycle of types',
      {
        'core/a.ts': "import type { B } from './b';",
        'core/b.ts': "import type { A } from './a';",
      },
      'cycle of modules: core/a.ts > core/b.ts > core/a.ts',
    ],
    [
      'a cycle of modules',
      { 'core/a.ts': "import './b';", 'core/b.ts': "import './a';" },
      'cycle of modules: core/a.ts > core/b.ts > core/a.ts',
    ],
    [
      'a cycle of rooms',
      { 'core/a.ts': "import '../api/x';", 'api/b.ts': "import '../core/y';" },
      'cycle of rooms: api > core > api',
    ],
  ])('sees %s', (_what, files, sentence) => {
    const found = houseViolations(new Map(Object.entries(files)));
    expect(found).toEqual(expect.arrayContaining([expect.stringContaining(sentence)]));
  });

  it('accepts what the table allows', () => {
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
      'providers/openai/result-line.ts':
        "import type { A } from '../b';\nimport { createHash } from 'node:crypto';\nimport 'zod';",
      'providers/b.ts': "import 'node:fs';",
    };
    expect(houseViolations(new Map(Object.entries(files)))).toEqual([]);
  });

  it('counts neither blank lines nor comments, and not the callbacks of describe', () => {
    const long = '\n  // why\n\n  b;'.repeat(35);
    const text = `describe('a', () => {${long}${long}});\nfunction b() {${long}\n}`;
    expect(houseViolations(new Map([['test/a.test.ts', text]]))).toEqual([]);
  });

  it('sees exports that only their own module or tests use, types in signatures aside', () => {
    const files = {
      'core/a.ts': `
        export function used(input: Input): Input { return own(input); }
        export function own(input: Input) { return input; }
        export interface Input { readonly a: string }
        export interface Lonely { readonly a: string }`,
      'core/b.ts': "import { used as renamed } from './a'; export const c = renamed;",
      'cli/d.js': "const { c } = await import('../dist/core/b.js');",
    };
    const modules = new Map(
      Object.entries(files).map(([file, text]) => [file, factsOf(file, text)]),
    );
    const found = unusedExports(modules, isProduct).map(({ file, name }) => `${file} ${name}`);
    expect(found).toEqual(['core/a.ts own', 'core/a.ts Lonely']);
  });
});

/** Its exports are those of a WebAssembly program, which a module of core/openai/ or core/journal/ calls. */
function isEntry(file: string): boolean {
  return /^core\/assembly\/((line|answer)-index|frame-run)\.ts$/.test(file);
}

/** Files whose exports are checked; declarations of plain JavaScript are not exports. */
function isProduct(file: string): boolean {
  return (file.split('/')[0] ?? '') in ROOMS && file.endsWith('.ts') && !file.endsWith('.d.ts');
}

/** Text of every .ts file of the repository except build outputs and installed packages. */
function sources(): Map<string, string> {
  return new Map(filesBelow('', '.ts').map(withText));
}

function withText(file: string): [string, string] {
  return [file, fs.readFileSync(path.join(ROOT, file), 'utf8')];
}

function filesBelow(folder: string, ending: string): string[] {
  return fs.readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (entry.isDirectory()) return isForeign(entry.name) ? [] : filesBelow(name, ending);
    return entry.name.endsWith(ending) ? [name] : [];
  });
}

function isForeign(folder: string): boolean {
  return folder.startsWith('.') || ['node_modules', 'dist', 'coverage'].includes(folder);
}
