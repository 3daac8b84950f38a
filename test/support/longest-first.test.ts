import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../platform/package-root';

interface Sequencer {
  sort(tests: readonly object[]): { path: string }[];
}
const LongestFirst = jest.requireActual<
  (new (options: object) => Sequencer) & { SLOW_SECONDS: Readonly<Record<string, number>> }
>('./longest-first.js');
const slow = Object.entries(LongestFirst.SLOW_SECONDS);
const pathOf = (file: string): string => join(packageRoot(), file);

describe('the order of test files', () => {
  it('begins with the slow files, the longest first', () => {
    const files = slow.map(([file]) => file).reverse();
    const context = { config: { cache: false }, hasteFS: { getSize: () => 1 } };
    const tests = ['test/a.test.ts', ...files, 'test/b.test.ts'].map((file) => ({
      ...{ context, path: pathOf(file) },
    }));
    const sorted = new LongestFirst({}).sort(tests).map(({ path }) => path);
    const longestFirst = [...slow].sort(([, a], [, b]) => b - a).map(([file]) => pathOf(file));
    expect(sorted.slice(0, slow.length)).toEqual(longestFirst);
    expect(sorted).toHaveLength(tests.length);
  });

  it('names files that exist', () => {
    expect(slow.length).toBeGreaterThan(0);
    expect(slow.map(([file]) => file).filter((file) => !existsSync(pathOf(file)))).toEqual([]);
  });
});
