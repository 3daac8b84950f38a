import { licences, page } from '../../.ci/licences.js';
import { read } from '../deployment/repository';

describe('docs/licences.md', () => {
  it('lists the production packages of package-lock.json; npm run licences updates it', () => {
    expect(read('docs/licences.md')).toBe(page());
  });
});

describe('the list of licences', () => {
  it('contains production packages only, each by its own name', () => {
    const found = licences({
      packages: {
        '': {},
        'node_modules/a': { license: 'MIT' },
        'node_modules/a/node_modules/@b/c': { license: 'MIT' },
        'node_modules/d': { license: 'GPL-3.0', dev: true },
      },
    });
    expect([...found]).toEqual([['MIT', new Set(['a', '@b/c'])]]);
  });

  it('refuses a licence that was not read', () => {
    const packages = { 'node_modules/a': { license: 'GPL-3.0' } };
    expect(() => licences({ packages })).toThrow('a has the licence GPL-3.0');
  });
});
