import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

interface Prepare {
  ensureNode(version: string): void;
  isInstalled(root: string): boolean;
  sourcesHash(root: string): string;
}
const { ensureNode, isInstalled, sourcesHash } =
  jest.requireActual<Prepare>('../../cli/prepare.js');

describe('the preparation of a fresh clone', () => {
  let root: string;

  beforeEach(() => {
    root = fs.mkdtempSync(path.join(os.tmpdir(), 'nightshift-clone-'));
    const packages = {
      '': { name: 'nightshift' },
      'node_modules/pg': { version: '1.0.0' },
      'node_modules/fsevents': { version: '2.0.0', optional: true },
    };
    write('package-lock.json', JSON.stringify({ packages }));
    for (const file of [
      'rooms.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'core/a.ts',
      'core/b.ts',
    ]) {
      write(file, file === 'rooms.json' ? '{"core":{}}' : file);
    }
  });
  afterEach(() => fs.rmSync(root, { recursive: true }));

  it('refuses a Node that is too old and accepts newer ones', () => {
    expect(() => ensureNode('18.20.0')).toThrow('needs Node 20.19');
    expect(() => ensureNode('20.18.3')).toThrow('needs Node 20.19');
    for (const version of ['20.19.0', '22.0.0', '24.1.2']) {
      expect(() => ensureNode(version)).not.toThrow();
    }
  });

  it('detects that nothing is installed', () => {
    expect(isInstalled(root)).toBe(false);
  });

  it('accepts packages that match the lock file, even without the optional ones', () => {
    install({ 'node_modules/pg': { version: '1.0.0' } });
    expect(isInstalled(root)).toBe(true);
  });

  it('detects a package of another version, and a missing one', () => {
    install({ 'node_modules/pg': { version: '0.9.0' } });
    expect(isInstalled(root)).toBe(false);
    install({});
    expect(isInstalled(root)).toBe(false);
  });

  it('detects an interrupted installation', () => {
    write('node_modules/pg/package.json', '{}');
    expect(isInstalled(root)).toBe(false);
  });

  it('identifies sources by content and name, not by modification time', () => {
    const before = sourcesHash(root);
    fs.utimesSync(path.join(root, 'core/a.ts'), 1, 1);
    expect(sourcesHash(root)).toBe(before);
    write('core/a.ts', 'changed');
    const changed = sourcesHash(root);
    expect(changed).not.toBe(before);
    fs.renameSync(path.join(root, 'core/a.ts'), path.join(root, 'core/c.ts'));
    expect(sourcesHash(root)).not.toBe(changed);
  });

  function install(packages: Record<string, { version: string }>): void {
    write('node_modules/.package-lock.json', JSON.stringify({ packages }));
  }

  function write(file: string, text: string): void {
    fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    fs.writeFileSync(path.join(root, file), text);
  }
});
