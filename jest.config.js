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
  // Two test files at a time: most of them start servers of their own.
  maxWorkers: 2,
  testTimeout: 30_000,
};
