import type { IncomingMessage } from 'node:http';
import { NightshiftError } from '../../core/errors';
import { openUrl } from '../binaries/open-url';
import { unpackProgram } from '../binaries/unpack-program';
import { ARCHIVE_CHECKSUMS } from './checksums';
import { withChecksum } from './with-checksum';

/** What to download, and where to. */
export interface DownloadOptions {
  /** Version of the CLI, e.g. `v1.5.1`. */
  readonly version: string;
  /** Base URL of the download service. Default: the one that Temporal's SDK uses. */
  readonly service?: string;
  /** Longest time without a byte. */
  readonly stallTimeoutMs?: number;
  readonly signal?: AbortSignal;
  /** SHA-256 of the archive. Default: the one that is pinned for this version and platform. */
  readonly sha256?: string;
  /** File that the program is written to. It appears only when it is complete. */
  readonly target: string;
  onProgress?(receivedBytes: number): void;
}

const SDK_SERVICE = 'https://temporal.download';
const STALL_TIMEOUT_MS = 30_000;
const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin' };
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/**
 * Downloads the Temporal CLI as the test environment of Temporal's SDK does: asks the service for the
 * archive of this platform, then unpacks the one program in it. The archive must have the pinned checksum.
 *
 * @throws unavailable with the URL and what went wrong, object_missing if the archive has no program
 */
export async function downloadServer(options: DownloadOptions): Promise<void> {
  const { version, service = SDK_SERVICE, stallTimeoutMs = STALL_TIMEOUT_MS, target } = options;
  const platform = PLATFORMS[process.platform];
  const arch = ARCHITECTURES[process.arch];
  if (platform === undefined || arch === undefined) {
    throw unavailable(`there is no download for ${process.platform} ${process.arch}`);
  }
  const { sha256 = ARCHIVE_CHECKSUMS[`${version} ${platform} ${arch}`] } = options;
  if (sha256 === undefined) throw unavailable(`there is no pinned checksum of ${version}`);
  const infoUrl = `${service}/cli/${version}?arch=${arch}&platform=${platform}&format=tar.gz`;
  const info = parseInfo(await readAll(await openUrl(infoUrl, stallTimeoutMs)), infoUrl);
  options.signal?.throwIfAborted();
  const archive = await openUrl(info.archiveUrl, stallTimeoutMs);
  let receivedBytes = 0;
  archive.on('data', (chunk: Buffer) => options.onProgress?.((receivedBytes += chunk.length)));
  const abort = (): void => void archive.destroy(unavailable('the download was aborted'));
  options.signal?.addEventListener('abort', abort, { once: true });
  try {
    await unpackProgram(withChecksum(archive, sha256), info.fileToExtract, target);
  } catch (error) {
    if (error instanceof NightshiftError && error.code === 'object_missing') throw error;
    throw unavailable(`${info.archiveUrl}: ${(error as Error).message}`);
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
    // Reported below, with the address that answered.
  }
  throw unavailable(`${url} did not name an archive`);
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function unavailable(message: string): NightshiftError {
  return new NightshiftError('unavailable', message);
}
