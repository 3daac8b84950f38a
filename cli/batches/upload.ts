import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { NightshiftError } from '../../core/errors';
import type { BatchService, NewFile } from './batch-service';
import { humanBytes, humanDuration } from './human-format';
import type { InputFile } from './input-file';
import type { Interrupts } from './interrupts';
import type { Reporter } from './reporter';
import { retryTransfer } from './transfer-retry';

/** What to upload, and how to report it. */
export interface UploadOptions {
  readonly service: BatchService;
  readonly input: InputFile;
  /** `batch` by default. */
  readonly purpose?: NewFile['purpose'];
  readonly interrupts: Interrupts;
  readonly reporter: Reporter;
}

const ATTEMPTS = 4;
const READ_BYTES = 256 * 1024;

/**
 * Uploads the file and returns its id on the server. It is streamed, so memory does not grow with the
 * file. If the connection breaks, the upload starts again, up to 4 attempts in all.
 *
 * @throws unavailable if every attempt failed, invalid_request if the server refuses the file
 */
export async function uploadInput(options: UploadOptions): Promise<string> {
  const { service, reporter, interrupts } = options;
  const idempotencyKey = randomUUID();
  // A server that refuses an upload may close the connection before it is read to the end, and its
  // answer is lost then. So check the access first.
  await service.checkAccess(interrupts.signal);
  return retryTransfer({ attempts: ATTEMPTS, action: 'uploading', interrupts, reporter }, () =>
    uploadOnce(options, idempotencyKey),
  );
}

async function uploadOnce(options: UploadOptions, idempotencyKey: string): Promise<string> {
  const { service, input, purpose = 'batch', reporter, interrupts } = options;
  const startedAtMs = performance.now();
  const name = basename(input.path);
  const stream = createReadStream(input.path, { highWaterMark: READ_BYTES });
  try {
    const bytes = countBytes(stream, (sent) => {
      const tookMs = performance.now() - startedAtMs;
      reporter.status(uploadStatus({ name, sent, total: input.bytes, tookMs }));
    });
    const file = await service.upload({ purpose, name, bytes, idempotencyKey }, interrupts.signal);
    const tookMs = performance.now() - startedAtMs;
    const speed = `${humanBytes(input.bytes)} in ${humanDuration(tookMs)}`;
    reporter.say(`uploaded ${name} as ${file.id} (${speed})`);
    return file.id;
  } finally {
    stream.destroy();
  }
}

async function* countBytes(
  chunks: AsyncIterable<Buffer>,
  onBytes: (sent: number) => void,
): AsyncGenerator<Uint8Array> {
  let sent = 0;
  for await (const chunk of withReadErrors(chunks)) {
    yield chunk;
    sent += chunk.length;
    onBytes(sent);
  }
}

/** Marks errors of the disk, which must not be retried like errors of the network. */
async function* withReadErrors(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (cause) {
    const message = `cannot read the input file: ${(cause as Error).message}`;
    throw new NightshiftError('invalid_request', message, { cause });
  }
}

function uploadStatus(at: { name: string; sent: number; total: number; tookMs: number }): string {
  const { name, sent, total, tookMs } = at;
  const percent = `${Math.floor((sent / total) * 100)}%`;
  const speed = tookMs < 500 ? '' : `, ${humanBytes(Math.round((sent / tookMs) * 1_000))}/s`;
  return `uploading ${name}: ${percent}, ${humanBytes(sent)} of ${humanBytes(total)}${speed}`;
}
