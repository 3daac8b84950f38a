import { setTimeout as delay } from 'node:timers/promises';
import { GetObjectCommand, type GetObjectCommandOutput } from '@aws-sdk/client-s3';
import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import type { LentBody } from './lent-body';
import { lookUpExisting } from './look-up';
import type { S3Bucket } from './s3-bucket';
import { hasName, missingObject, s3Error, statusOf } from './s3-errors';

/** Consecutive connections that break before they give a byte. */
const MAX_BREAKS = 4;
const FIRST_WAIT_MS = 100;

/** Which bytes to read. */
export interface BytesToRead {
  readonly key: string;
  readonly range?: Range | undefined;
  /** Of the object that is meant; without it, the one that the first answer names. */
  readonly etag?: string;
}

/**
 * Pulls bytes of one object. If the connection breaks or stalls, it goes on where it stopped, with the same
 * object: another one under that key is an error. Not for concurrent calls.
 */
export class ObjectBytes {
  readonly #bucket: S3Bucket;
  readonly #key: string;
  readonly #closed = new AbortController();
  #position: number;
  /** Null until the first answer if the whole rest of the object is meant. */
  #end: number | null;
  #etag: string | null;
  #body: LentBody | null = null;
  #breaks = 0;

  constructor(bucket: S3Bucket, { key, range, etag = '' }: BytesToRead) {
    this.#bucket = bucket;
    this.#key = key;
    this.#position = range?.from ?? 0;
    this.#end = range?.to ?? null;
    this.#etag = etag === '' ? null : etag;
  }

  /** The next bytes, valid until the next call; null at the end. @throws object_missing, object_store_failed */
  async next(): Promise<Buffer | null> {
    for (;;) {
      if (this.#body === null && this.#isAtEnd) return this.#finish();
      const body = (this.#body ??= await this.#connect());
      if (body === null) return null;
      if (this.#closed.signal.aborted) this.release();
      this.#closed.signal.throwIfAborted();
      try {
        const chunk = await body.pull();
        if (chunk === null) return this.#endOfBody();
        this.#position += chunk.length;
        this.#breaks = 0;
        return chunk;
      } catch (error) {
        await this.#afterBreak(error);
      }
    }
  }

  /** Gives the connection back. The next call opens another one. */
  release(): void {
    this.#body?.destroy();
    this.#body = null;
  }

  /** Ends a pending call and gives the connection back. */
  close(): void {
    this.#closed.abort();
    this.release();
  }

  get #isAtEnd(): boolean {
    return this.#end !== null && this.#position >= this.#end;
  }

  /** The body was read to its end, so its connection is free for other requests: do not destroy it. */
  #endOfBody(): null {
    this.#end ??= this.#position;
    if (!this.#isAtEnd) throw new Error('the connection was closed early');
    this.#body = null;
    return null;
  }

  /** An empty range of a missing object is an error too. */
  async #finish(): Promise<null> {
    if (this.#etag === null) this.#etag = (await lookUpExisting(this.#bucket, this.#key)).etag;
    return null;
  }

  /** Null if the object ends before the range. */
  async #connect(): Promise<LentBody | null> {
    const { client, at, limited } = this.#bucket;
    const isWhole = this.#position === 0 && this.#end === null;
    const last = this.#end === null ? '' : this.#end - 1;
    const command = new GetObjectCommand({
      ...at(this.#key),
      ...(isWhole ? {} : { Range: `bytes=${this.#position}-${last}` }),
      ...(this.#etag === null ? {} : { IfMatch: this.#etag }),
    });
    try {
      const answer = await client.send(limited(command, 0, this.#closed.signal));
      return this.#accept(answer, isWhole);
    } catch (error) {
      if (statusOf(error) === 416) return null;
      throw this.#refusal(error);
    }
  }

  #accept(answer: GetObjectCommandOutput, isWhole: boolean): LentBody {
    const { ContentLength: length, ContentRange: range, ETag = '' } = answer;
    const body = answer.Body as unknown as LentBody;
    // A failure is told by `pull`; this keeps it from being uncaught as well.
    body.on('error', () => undefined);
    if (!isWhole && range?.startsWith(`bytes ${this.#position}-`) !== true) {
      body.destroy();
      const message = `read ${this.#key}: the store ignored the range and sent other bytes`;
      throw new NightshiftError('object_store_failed', message);
    }
    if (length !== undefined) this.#end = this.#position + length;
    this.#etag ??= ETag;
    return body;
  }

  #refusal(error: unknown): NightshiftError {
    if (hasName(error, 'NoSuchKey')) return missingObject(this.#key, error);
    const action = `read ${this.#key}`;
    if (statusOf(error) !== 412) return s3Error(error, action, this.#bucket);
    const message = `${action}: another object was written under its key`;
    return new NightshiftError('object_store_failed', message, { cause: error });
  }

  /** Waits before the next connection. @throws object_store_failed after too many, and when closed */
  async #afterBreak(error: unknown): Promise<void> {
    this.release();
    this.#closed.signal.throwIfAborted();
    if (++this.#breaks > MAX_BREAKS) throw s3Error(error, `read ${this.#key}`, this.#bucket);
    const waitMs = FIRST_WAIT_MS * 2 ** (this.#breaks - 1) * (0.5 + Math.random());
    await delay(waitMs, undefined, { signal: this.#closed.signal });
  }
}

/** Fills `into` from an object; returns how many bytes, fewer if they end. */
export async function fillFrom(bytes: ObjectBytes, into: Buffer): Promise<number> {
  let done = 0;
  for await (const chunk of chunksOf(bytes)) done += chunk.copy(into, done);
  return done;
}

/**
 * All chunks, each valid until the next one is asked for. Gives the connection back, also if the consumer stops early.
 * `signal` ends it, also while it waits.
 */
export async function* chunksOf(bytes: ObjectBytes, signal?: AbortSignal): AsyncGenerator<Buffer> {
  const close = (): void => bytes.close();
  signal?.addEventListener('abort', close, { once: true });
  try {
    signal?.throwIfAborted();
    for (let chunk = await bytes.next(); chunk !== null; chunk = await bytes.next()) yield chunk;
  } finally {
    signal?.removeEventListener('abort', close);
    close();
  }
}
