import { randomBytes } from 'node:crypto';
import type { OpenJournal } from '../../../storage/journal/journal';
import type { FrameRef, JournalScope, JournalWriter } from '../../../storage/journal/journal-store';
import type { ObjectStore } from '../../../storage/object-store';
import { append, collect } from './fixtures';

/** A journal under test. */
export interface JournalUnderTest {
  readonly journal: OpenJournal;
  readonly store: ObjectStore;
  /** Called before each write of a segment; a test may make it wait, or throw in place of the write. */
  beforeWrite: () => Promise<void>;
  remove(): Promise<void>;
}

/** The journal under test, with a batch of its own for each test. */
export class Area {
  place!: JournalUnderTest;
  scope!: JournalScope;
  #writers: JournalWriter[] = [];

  begin(): void {
    this.scope = { batchId: `batch_${randomBytes(16).toString('hex')}`, safeModel: 'llama-3' };
    this.place.beforeWrite = () => Promise.resolve();
  }

  /** A failed test leaves its writers open, and they retry until a write succeeds. */
  async end(): Promise<void> {
    this.place.beforeWrite = () => Promise.resolve();
    await Promise.allSettled(this.#writers.splice(0).map((writer) => writer.close()));
  }

  get journal(): OpenJournal {
    return this.place.journal;
  }

  get store(): ObjectStore {
    return this.place.store;
  }

  writer(from = 20, to = 30): JournalWriter {
    const writer = this.journal.openWriter(this.scope, { from, to });
    this.#writers.push(writer);
    return writer;
  }

  async written(from: number, to: number, offsets: readonly number[]): Promise<FrameRef[]> {
    const writer = this.writer(from, to);
    for (const offset of offsets) append(writer, offset);
    await writer.close();
    return [...writer.frames];
  }

  scan(from: number, to: number): Promise<FrameRef[]> {
    return collect(this.journal.scan(this.scope, { from, to }));
  }

  fail(): void {
    this.place.beforeWrite = () => Promise.reject(new Error('the store is away'));
  }

  recover(): void {
    this.place.beforeWrite = () => Promise.resolve();
  }

  /** Makes writes wait; returns the functions that end those in flight. */
  hold(): (() => void)[] {
    const held: (() => void)[] = [];
    this.place.beforeWrite = () => new Promise<void>((resolve) => held.push(resolve));
    return held;
  }
}
