import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFilesFault, openFilesLimit } from '../../platform/open-files';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             63489                63489                processes
Max open files            1024                 1048576              files
Max locked memory         unlimited            unlimited            bytes
`;

const folder = mkdtempSync(join(tmpdir(), 'nightshift-open-files-'));
afterAll(() => rmSync(folder, { recursive: true }));

function limitIn(text: string): number | null {
  const file = join(folder, 'limits');
  writeFileSync(file, text);
  return openFilesLimit(file);
}

describe('the limit of open files', () => {
  it('is the soft limit of the process', () => {
    expect(limitIn(LIMITS)).toBe(1_024);
  });

  it('is unknown if the system has none or does not say', () => {
    expect(limitIn(LIMITS.replace('1024   ', 'unlimited'))).toBeNull();
    expect(limitIn('')).toBeNull();
    expect(openFilesLimit(join(folder, 'missing'))).toBeNull();
  });

  it('is read from the running system', () => {
    const limit = openFilesLimit();
    if (process.platform === 'linux' && limit !== null) expect(limit).toBeGreaterThan(0);
    else expect(limit).toBeNull();
  });

  it('must have room for all connections and for the files of the process itself', () => {
    expect(openFilesFault(1_024, 'api.max_connections', 2_000)).toBe(
      'This process may open 1024 files, but api.max_connections allows 2000 connections, and 256 files are needed for everything else. Raise the limit of open files (ulimit -n), or lower api.max_connections.',
    );
    expect(openFilesFault(2_255, 'api.max_connections', 2_000)).toContain('2255 files');
    expect(openFilesFault(2_256, 'api.max_connections', 2_000)).toBeNull();
    expect(openFilesFault(null, 'api.max_connections', 2_000)).toBeNull();
  });
});
