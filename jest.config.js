/** All tiers run from source through swc; types are `tsc`'s job (`npm run typecheck`). */
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.nightshift/'],
  globalSetup: '<rootDir>/test/support/run-scope.js',
  globalTeardown: '<rootDir>/test/support/run-scope-end.js',
  // Three test files at a time, also on two cores: most of their time is waiting, for servers of their own.
  maxWorkers: 3,
  testSequencer: '<rootDir>/test/support/longest-first.js',
  testTimeout: 30_000,
};
