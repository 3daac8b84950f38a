import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { NightshiftError } from '../../core/errors';
import { unpackProgram } from './unpack-program';

export interface DownloadOptions {
  /** Version of the CLI, e.g. `v1.5.1`. */
  readonly version: string;
  /** Service that the SDK itself asks; another one in tests. */
  readonly service?: string;
  /** Longest time without a byte. */
  readonly stallTimeoutMs?: number;
  readonly signal?: AbortSignal;
  /** File that the program is written to; it appears only when whole. */
  readonly target: string;
  onProgress?(receivedBytes: number): void;
}

const SDK_SERVICE = 'https://temporal.download';
const STALL_TIMEOUT_MS = 30_000;
const MAX_REDIRECTS = 5;
const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Fetches the Temporal CLI as the SDK's test environment does: asks for the archive of this platform,
 * then unpacks its one program.
 *
 * @throws unavailable with what was asked and what came back
 */
export async function downloadServer(options: DownloadOptions): Promise<void> {
  const { version, service = SDK_SERVICE, stallTimeoutMs = STALL_TIMEOUT_MS, target } = options;
  const platform = PLATFORMS[process.platform];
  const arch = ARCHITECTURES[process.arch];
  if (platform === undefined || arch === undefined) {
    throw failure(`no download for ${process.platform} ${process.arch}`);
  }
  const about = `${service}/cli/${version}?arch=${arch}&platform=${platform}&format=tar.gz`;
  const info = parseInfo(await readAll(await open(about, stallTimeoutMs)), about);
  options.signal?.throwIfAborted();
  const archive = await open(info.archiveUrl, stallTimeoutMs);
  let receivedBytes = 0;
  archive.on('data', (chunk: Buffer) => options.onProgress?.((receivedBytes += chunk.length)));
  options.signal?.addEventListener('abort', () => archive.destroy(failure('given up')), {
    once: true,
  });
  try {
    await unpackProgram(archive, info.fileToExtract, target);
  } catch (error) {
    throw asFailure(error as Error, info.archiveUrl);
  }
}

interface DownloadInfo {
  readonly archiveUrl: string;
  readonly fileToExtract: string;
}

function parseInfo(text: string, url: string): DownloadInfo {
  try {
    const { archiveUrl, fileToExtract } = JSON.parse(text) as Partial<DownloadInfo>;
    if (archiveUrl !== undefined && fileToExtract !== undefined)
      return { archiveUrl, fileToExtract };
  } catch {
    // Said below, with the address that answered.
  }
  throw failure(`${url} did not name an archive`);
}

/** The answer's body; the connection is given up when nothing comes for `stallTimeoutMs`. */
function open(url: string, stallTimeoutMs: number, redirects = 0): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let body: IncomingMessage | undefined;
    const request = (url.startsWith('https:') ? getHttps : getHttp)(url, (response) => {
      const { statusCode = 0 } = response;
      const { location } = response.headers;
      if (
        statusCode >= 300 &&
        statusCode < 400 &&
        location !== undefined &&
        redirects < MAX_REDIRECTS
      ) {
        response.resume();
        open(new URL(location, url).href, stallTimeoutMs, redirects + 1).then(resolve, reject);
      } else if (statusCode === 200) {
        body = response;
        resolve(response);
      } else {
        response.destroy();
        reject(failure(`${url} answered ${statusCode}`));
      }
    });
    request.setTimeout(stallTimeoutMs, () => {
      // A request that has its response tells nobody why it was destroyed: the response must.
      (body ?? request).destroy(failure(`${url}: no byte for ${stallTimeoutMs / 1_000} s`));
    });
    request.once('error', (error) => reject(asFailure(error, url)));
    watchDog(request, stallTimeoutMs, reject);
  });
}

/** Name look-up and connecting do not count as idle time of a socket: they get the same limit here. */
function watchDog(
  request: ReturnType<typeof getHttp>,
  stallTimeoutMs: number,
  reject: (error: Error) => void,
): void {
  const timer = setTimeout(() => {
    const error = failure(`no answer within ${stallTimeoutMs / 1_000} s`);
    request.destroy(error);
    reject(error);
  }, stallTimeoutMs);
  request.once('response', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function asFailure(error: Error, url: string): NightshiftError {
  return error instanceof NightshiftError ? error : failure(`${url}: ${error.message}`);
}

function failure(message: string): NightshiftError {
  return new NightshiftError('unavailable', message);
}
