import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Batch } from 'openai/resources/batches';
import { NightshiftError } from '../../core/errors';
import type { BatchService } from './batch-service';
import type { ClientIo } from './client-io';
import { createFailureTally, type FailureKind } from './failure-tally';
import { humanBytes } from './human-format';
import type { Interrupts } from './interrupts';
import type { Reporter } from './reporter';
import { STDOUT, type ResultTargets } from './result-targets';
import { saveFile } from './save-file';
import { retryTransfer } from './transfer-retry';
import { unpackAudio, type UnpackedAudio } from './unpack-audio';

/** Where results come from and where they go. */
export interface FetchOptions {
  readonly service: BatchService;
  readonly io: Pick<ClientIo, 'stdout'>;
  readonly interrupts: Interrupts;
  readonly reporter: Reporter;
  readonly targets: ResultTargets;
  readonly force: boolean;
}

/** A downloaded result file. */
export interface SavedFile {
  readonly target: string;
  readonly bytes: number;
}

/** The downloaded files; `null` if the batch has no such file. */
export interface FetchedResults {
  readonly output: SavedFile | null;
  readonly errors: SavedFile | null;
  /** Lines of the error file by error code, most frequent first. */
  readonly failures: readonly FailureKind[];
  /** Null unless they were wanted and there is an output file. */
  readonly audio: UnpackedAudio | null;
}

const ATTEMPTS = 5;

/**
 * Downloads the result files of an ended batch, and unpacks speech if a folder for it is named. If the connection breaks, the download starts again, up to
 * 5 attempts in all. Once bytes went to stdout there is no retry, because they cannot be taken back.
 *
 * @throws unavailable, not_found if a file was deleted, invalid_request if it cannot be written
 */
export async function fetchResults(batch: Batch, options: FetchOptions): Promise<FetchedResults> {
  const { targets } = options;
  const tally: { kinds: FailureKind[] } = { kinds: [] };
  const output = await fetchFile(batch.output_file_id, targets.output, options);
  const errors = await fetchFile(batch.error_file_id, targets.errors, options, tally);
  return { output, errors, failures: tally.kinds, audio: await unpacked(output, options) };
}

async function unpacked(
  output: SavedFile | null,
  { targets, force, interrupts }: FetchOptions,
): Promise<UnpackedAudio | null> {
  const { audio: dir } = targets;
  return output === null || dir === null
    ? null
    : unpackAudio(output.target, { dir, force, interrupts });
}

async function fetchFile(
  fileId: string | null | undefined,
  target: string,
  options: FetchOptions,
  tally?: { kinds: FailureKind[] },
): Promise<SavedFile | null> {
  if (!fileId) return null;
  const { reporter, interrupts } = options;
  let sent = 0;
  const mayRepeat = (): boolean => target !== STDOUT || sent === 0;
  const retries = { attempts: ATTEMPTS, action: 'downloading', interrupts, reporter, mayRepeat };
  return retryTransfer(retries, async () => {
    const transfer: Transfer = { fileId, target, sent: 0, ...(tally && { tally }) };
    try {
      await fetchOnce(transfer, options);
      return { target, bytes: transfer.sent };
    } finally {
      ({ sent } = transfer);
      reporter.clear();
    }
  });
}

interface Transfer {
  readonly fileId: string;
  readonly target: string;
  readonly tally?: { kinds: FailureKind[] };
  sent: number;
}

async function fetchOnce(transfer: Transfer, options: FetchOptions): Promise<void> {
  const { service, io, interrupts, force } = options;
  const { body, bytes } = await service.content(transfer.fileId, interrupts.signal);
  const tally = createFailureTally();
  await saveFile({ target: transfer.target, force, stdout: io.stdout }, async (sink) => {
    await copy(body, sink, (chunk) => {
      if (transfer.tally) tally.add(chunk);
      transfer.sent += chunk.length;
      options.reporter.status(
        `downloading ${transfer.target}: ${humanBytes(transfer.sent)}${of(bytes)}`,
      );
    });
    if (bytes !== null && transfer.sent !== bytes)
      throw broken(`received ${transfer.sent} of ${bytes} bytes`);
  });
  if (transfer.tally) transfer.tally.kinds = tally.kinds();
}

/** Distinguishes network errors, which come from reading, from disk errors, which come from writing. */
async function copy(
  body: AsyncIterable<Uint8Array>,
  sink: Writable,
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  const disk: { error: Error | null } = { error: null };
  const onError = (error: Error): void => void (disk.error = error);
  sink.on('error', onError);
  try {
    for await (const chunk of body) {
      onChunk(chunk);
      // Rejects when the sink fails while we wait.
      if (!sink.write(chunk) && disk.error === null) await once(sink, 'drain');
      if (disk.error !== null) break;
    }
  } catch (cause) {
    if (disk.error === null) throw broken((cause as Error).message, cause);
  } finally {
    sink.off('error', onError);
  }
  if (disk.error !== null) throw disk.error;
}

function broken(reason: string, cause?: unknown): NightshiftError {
  const message = `the download was interrupted (${reason})`;
  return new NightshiftError('unavailable', message, cause === undefined ? {} : { cause });
}

function of(bytes: number | null): string {
  return bytes === null ? '' : ` of ${humanBytes(bytes)}`;
}
