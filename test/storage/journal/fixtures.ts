import { crc32 } from 'node:zlib';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_USAGE } from '../../../core/batch/counts';
import { encodeFrame, FRAME_KIND, type FrameHeader } from '../../../core/journal/frame';
import type { AppendFile, OpenAppendFile } from '../../../storage/journal/append-file';
import { createFilesystemJournal } from '../../../storage/journal/filesystem-journal';
import type { FrameRef, JournalScope, JournalWriter } from '../../../storage/journal/journal-store';
import { openFilesystemStore } from '../../../storage/objects/filesystem';
import type { ObjectStore } from '../../../storage/object-store';

export const SCOPE: JournalScope = { batchId: `batch_${'ab'.repeat(16)}`, safeModel: 'llama-3' };

export interface JournalPlace {
  readonly path: string;
  readonly store: ObjectStore;
  readonly journal: ReturnType<typeof createFilesystemJournal>;
  remove(): Promise<void>;
}

/** A journal in a folder of its own. */
export async function journalPlace(openFile?: OpenAppendFile): Promise<JournalPlace> {
  const path = await mkdtemp(join(tmpdir(), 'nightshift-journal-'));
  const store = await openFilesystemStore({ path });
  const journal = createFilesystemJournal({ path, store, ...(openFile ? { openFile } : {}) });
  const writers: JournalWriter[] = [];
  const openWriter: typeof journal.openWriter = (...args) => {
    const writer = journal.openWriter(...args);
    writers.push(writer);
    return writer;
  };
  const remove = async () => {
    // A failed test leaves its writers open, and they retry until the disk works.
    await Promise.allSettled(writers.map((writer) => writer.close()));
    await journal.close();
    await rm(path, { recursive: true, force: true });
  };
  return { path, store, journal: { ...journal, openWriter }, remove };
}

/** An answer frame, ready to append. */
export function answer(
  offset: number,
  text: string,
  kind: FrameHeader['kind'] = FRAME_KIND.output,
): { header: FrameHeader; bytes: Buffer } {
  const payload = Buffer.from(text);
  const fields = { offset, kind, status: 200, tries: 1, usage: { ...NO_USAGE, totalTokens: 3 } };
  return {
    header: { ...fields, payloadLength: payload.length },
    bytes: encodeFrame(fields, payload, crc32),
  };
}

export function append(writer: JournalWriter, offset: number, text = `answer ${offset}`): void {
  const { header, bytes } = answer(offset, text);
  writer.append(header, bytes);
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

export const offsetsOf = (frames: readonly FrameRef[]) => frames.map((f) => f.header.offset);

/** An append file in memory whose next calls can be made to fail. */
export class FakeDisk {
  readonly files: { path: string; bytes: Buffer; synced: number; closed: boolean }[] = [];
  /** Bytes that still fit; creating a file is free. */
  freeBytes = Number.POSITIVE_INFINITY;
  failOpens = 0;
  failSyncs = 0;

  readonly open: OpenAppendFile = async (path) => {
    if (this.failOpens-- > 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const file = { path, bytes: Buffer.alloc(0), synced: 0, closed: false };
    this.files.push(file);
    return this.#appendFile(file);
  };

  #appendFile(file: FakeDisk['files'][number]): AppendFile {
    return {
      append: async (bytes) => {
        if (this.freeBytes === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
        const taken = Math.min(bytes.length, this.freeBytes);
        this.freeBytes -= taken;
        file.bytes = Buffer.concat([file.bytes, bytes.subarray(0, taken)]);
        return taken;
      },
      sync: async () => {
        if (this.failSyncs-- > 0) throw new Error('EIO');
        file.synced = file.bytes.length;
      },
      close: async () => {
        file.closed = true;
      },
      remove: async () => {
        this.files.splice(this.files.indexOf(file), 1);
      },
    };
  }
}
