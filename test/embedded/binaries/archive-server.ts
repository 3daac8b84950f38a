import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

const BLOCK_BYTES = 512;

/** An entry of an archive; a plain file unless `type` says otherwise. */
export interface ArchiveEntry {
  readonly path: string;
  readonly text?: string;
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link';
  readonly linkpath?: string;
}

/** A gzipped tar archive, with headers as `tar` writes them. */
export function tarArchive(entries: readonly ArchiveEntry[]): Buffer {
  const blocks = entries.flatMap(({ path, text = '', type = 'File', linkpath = '' }) => {
    const header = Buffer.alloc(BLOCK_BYTES);
    new Header({ path, type, linkpath, size: text.length, mode: 0o644 }).encode(header);
    const padding = (BLOCK_BYTES - (text.length % BLOCK_BYTES)) % BLOCK_BYTES;
    return [header, Buffer.from(text), Buffer.alloc(padding)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]));
}

/** Answers as the download service does: the archive's address, a redirect, the archive. */
export function archiveService(archive: Buffer, seen: string[] = []): RequestListener {
  return (request, response) => {
    seen.push(request.url ?? '');
    if (request.url?.startsWith('/cli/') === true) {
      const archiveUrl = `http://${request.headers.host}/moved`;
      response.end(JSON.stringify({ archiveUrl, fileToExtract: 'temporal' }));
    } else if (request.url === '/moved') {
      response.writeHead(302, { location: '/archive' }).end();
    } else {
      response.end(archive);
    }
  };
}

/** A server on loopback. */
export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves on a free port of loopback. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
