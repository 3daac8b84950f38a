import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureBuilt } from '../../cli/prepare.js';
import { dataDirHolder } from '../../embedded/locks/data-dir-lock';
import { startStack } from '../../embedded/start-stack';

let dataDir: string;
// The host runs from the build.
beforeAll(() => ensureBuilt());
beforeEach(() => (dataDir = mkdtempSync(join(tmpdir(), 'nightshift-host-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));

describe('startStack()', () => {
  it('reports a wrong setting in words, and leaves the data directory unlocked', async () => {
    const settings = { concurrency: { globl: 4 } };
    await expect(startStack({ dataDir, settings })).rejects.toThrow(
      'concurrency.globl: unknown key, did you mean global?',
    );
    expect(dataDirHolder(dataDir)).toBeNull();
  });

  it('says why it cannot make its temporary folder', async () => {
    const before = process.env['TMPDIR'];
    process.env['TMPDIR'] = join(dataDir, 'missing');
    try {
      await expect(startStack()).rejects.toThrow(join(dataDir, 'missing'));
    } finally {
      if (before === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = before;
    }
  });

  it('ignores settings in the environment of its caller', async () => {
    process.env['NIGHTSHIFT__CONCURRENCY__GLOBL'] = '4';
    try {
      // Fails as well, but for the setting that the caller gives.
      await expect(startStack({ dataDir, settings: { log: { levle: 'x' } } })).rejects.toThrow(
        /has a problem:\n.*log\.levle/,
      );
    } finally {
      delete process.env['NIGHTSHIFT__CONCURRENCY__GLOBL'];
    }
  });

  it('refuses a port that is in use, if the caller chose it', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    try {
      await expect(startStack({ dataDir, port })).rejects.toThrow(String(port));
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
