import fs from 'node:fs';
import { defineConfig } from 'eslint/config';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/**
 * The house rules as the editor shows them. `rooms.json` says which room may import which; the same
 * file is the source of `test/architecture.test.ts`, which checks more than single files.
 */
const table = JSON.parse(fs.readFileSync(new URL('./rooms.json', import.meta.url), 'utf8'));
const rooms = Object.keys(table);
const product = rooms.map((room) => `${room}/**/*.ts`);

export default defineConfig(
  { ignores: ['dist/', 'node_modules/', '.nightshift/', 'coverage/', 'bench/node_modules/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      // An async method without await fits a port that returns promises, and turns throws into rejections.
      '@typescript-eslint/require-await': 'off',
      // Our objects are closures and records of functions, which do not use `this`.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'prefer-const': 'error',
    },
  },
  {
    files: product,
    plugins: { regexp },
    rules: {
      // A regular expression that backtracks over client input blocks the only thread of the process.
      // `potential` also reports cases that only the present flags and callers rule out.
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      'max-lines': ['error', { max: 400 }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
      'no-restricted-syntax': ['error', ...environment()],
    },
  },
  { files: ['cli/**/*.ts', 'workers/bundle-workflows.ts'], rules: { 'no-console': 'off' } },
  // AssemblyScript's types are all numbers to TypeScript.
  {
    files: ['core/assembly/*.ts'],
    rules: { '@typescript-eslint/no-unnecessary-type-assertion': 'off' },
  },
  { files: ['platform/config.ts'], rules: { 'no-restricted-syntax': 'off' } },
  ...rooms.map(floorRules),
  {
    files: ['core/**/*.ts', 'simulator/engine/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...environment(), ...clockAndChance()],
      'no-restricted-globals': ['error', ...ambient()],
    },
  },
  ...rooms.flatMap(sandboxRules),
  ...rooms.flatMap(pureRules),
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.base],
    rules: {
      eqeqeq: 'error',
      'no-undef': 'off',
      'no-unused-vars': 'error',
      'prefer-const': 'error',
    },
  },
);

/** What the files of a room may import: its entry in the table as patterns of forbidden names. */
function floorRules(room) {
  const patterns = forbiddenImports(room);
  return {
    files: [`${room}/**/*.ts`],
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
  };
}

/** Files of a room that only translate. The architecture test also checks what they import indirectly. */
function pureRules(room) {
  const { pure = [] } = table[room];
  if (pure.length === 0) return [];
  const effects = {
    regex: '^(node:(?!crypto$)|@aws-sdk/|(\\.\\./)+platform/)',
    allowTypeImports: true,
    message: 'no I/O here: see "pure" in rooms.json',
  };
  const patterns = [...forbiddenImports(room), effects];
  return {
    files: pure,
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', { patterns }],
      'no-restricted-syntax': ['error', ...environment(), ...clockAndChance()],
      'no-restricted-globals': ['error', ...ambient()],
    },
  };
}

function forbiddenImports(room) {
  const { values, types, packages, node } = table[room];
  const whole = [room, ...values.filter((name) => !name.includes('/'))];
  const parts = values.filter((name) => name.includes('/'));
  const message = `${room}/ may not import this: see rooms.json`;
  const others = rooms.filter((other) => !whole.includes(other));
  const patterns = others.map((other) => ({
    regex: `^(\\.\\./)+(?!(${parts.join('|') || '-'})$)${other}(/|$)`,
    allowTypeImports: types.includes(other),
    message,
  }));
  patterns.push({ regex: '^(\\.\\./)+(test|bench|examples|dist|docs)(/|$)', message });
  patterns.push({ regex: `^(?!\\.${node ? '|node:' : ''}${anyOf(packages)})`, message });
  return patterns;
}

/** Temporal's workflow sandbox has no Buffer. */
function sandboxRules(room) {
  const { sandbox } = table[room];
  if (!sandbox) return [];
  return {
    files: [`${room}/**/*.ts`],
    ignores: sandbox.except.map((folder) => `${folder}/**`),
    rules: { 'no-restricted-globals': ['error', 'Buffer', ...ambient()] },
  };
}

/** `|pg(/|$)|@scope/` for use inside a negative lookahead. */
function anyOf(packages) {
  return packages
    .map((name) => (name.endsWith('/*') ? `|${name.slice(0, -1)}` : `|${name}(/|$)`))
    .join('');
}

function environment() {
  const message = 'only platform/config.ts reads the environment';
  return [{ selector: "MemberExpression[object.name='process'][property.name='env']", message }];
}

function clockAndChance() {
  const message = 'no clock and no randomness here: take nowMs or random as an argument';
  return [
    { selector: "MemberExpression[object.name='Date'][property.name='now']", message },
    { selector: "MemberExpression[object.name='Math'][property.name='random']", message },
    { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message },
  ];
}

/** Globals of Node that need no import. */
function ambient() {
  return [
    'process',
    'performance',
    'fetch',
    'crypto',
    'require',
    'setImmediate',
    'queueMicrotask',
    'global',
    '__dirname',
    '__filename',
  ];
}
