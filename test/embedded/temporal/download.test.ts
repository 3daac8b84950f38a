import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { downloadServer } from '../../../embedded/temporal/download';
import { archiveService, serve, tarArchive, type TestServer } from '../binaries/archive-server';

let folder: string;
let server: TestServer | undefined;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-download-'))));
afterEach(async () => {
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
  await server?.close();
  server = undefined;
});

async function startService(listener: RequestListener): Promise<string> {
  server = await serve(listener);
  return server.url;
}

describe('the download of the Temporal server', () => {
  const target = () => join(folder, 'temporal');
  const download = (service: string, archive?: Buffer) =>
    downloadServer({
      version: 'v1.5.1',
      service,
      target: target(),
      stallTimeoutMs: 200,
      ...(archive && { sha256: createHash('sha256').update(archive).digest('hex') }),
    });

  it('gives up if no byte arrives in time', async () => {
    const service = await startService(() => undefined);
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringMatching(/no (byte|answer) (for|within) 0\.2 s/),
    });
  });

  it('gives up if the archive stalls halfway, and leaves no file behind', async () => {
    const archive = tarArchive([{ path: 'temporal', text: 'y'.repeat(100_000) }]);
    const service = await startService((request, response) => {
      if (request.url === '/archive') response.write(archive.subarray(0, 100));
      else archiveService(archive)(request, response);
    });
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringContaining('no byte for 0.2 s'),
    });
    expect(existsSync(target())).toBe(false);
  });

  it('fails if the archive is cut short, and leaves no file behind', async () => {
    const whole = tarArchive([{ path: 'temporal', text: 'y'.repeat(100_000) }]);
    const half = whole.subarray(0, whole.length - 40);
    const service = await startService(archiveService(half));
    await expect(download(service, half)).rejects.toThrow();
    expect(existsSync(target())).toBe(false);
  });

  it('fails if the archive does not contain the program', async () => {
    const archive = tarArchive([{ path: 'other', text: 'x' }]);
    const service = await startService(archiveService(archive));
    await expect(download(service, archive)).rejects.toMatchObject({ code: 'object_missing' });
  });

  it('fails if the archive is not the pinned one, and leaves no file behind', async () => {
    const archive = tarArchive([{ path: 'temporal', text: 'something else' }]);
    const service = await startService(archiveService(archive));
    await expect(download(service)).rejects.toThrow(
      /^http:.*: the SHA-256 of the archive is \w{64}, not \w{64}$/,
    );
    expect(existsSync(target())).toBe(false);
  });

  it('fails for a version without a pinned checksum', async () => {
    const wanted = { version: 'v9.9.9', service: 'http://127.0.0.1:1', target: target() };
    await expect(downloadServer(wanted)).rejects.toThrow('no pinned checksum of v9.9.9');
  });

  it('fails if the service does not name an archive', async () => {
    const service = await startService((_, response) => response.end('<html>'));
    await expect(download(service)).rejects.toMatchObject({
      message: expect.stringContaining('did not name an archive'),
    });
  });
});
