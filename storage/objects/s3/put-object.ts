import { PutObjectCommand } from '@aws-sdk/client-s3';
import { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import type { ObjectBody, PutResult } from '../../object-store';
import { newObject, writeIfAbsent } from './conditional-write';
import { writerMetadata } from './look-up';
import { FIRST_PART_BYTES, PartBuffers, type PartBuffer } from './part-buffers';
import { PartSender } from './part-sender';
import type { S3Bucket } from './s3-bucket';

/** Parts that a process sends at the same time. */
const MAX_PARTS_IN_FLIGHT = 16;

/** Writes objects to a bucket. One for each store, because its writes share buffers. */
export class ObjectWriter {
  readonly #bucket: S3Bucket;
  readonly #onPassed: (bytes: number) => void;
  readonly #buffers = new PartBuffers();
  readonly #slots = new ConcurrencyLimit(MAX_PARTS_IN_FLIGHT);

  constructor(bucket: S3Bucket, onPassed: (bytes: number) => void) {
    this.#bucket = bucket;
    this.#onPassed = onPassed;
  }

  /**
   * Writes an object if its key is free: in one request up to 5 MiB, in parts if it is longer. A write
   * holds at most five buffers of a part. @throws object_store_failed, and what the body throws
   */
  async putIfAbsent(key: string, body: ObjectBody): Promise<PutResult> {
    this.#bucket.at(key);
    if (body instanceof Uint8Array && body.length <= FIRST_PART_BYTES) {
      return this.#putWhole(key, body);
    }
    return this.#putPieces(key, body instanceof Uint8Array ? [body] : body);
  }

  async #putPieces(
    key: string,
    pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<PutResult> {
    const shared = { bucket: this.#bucket, buffers: this.#buffers, slots: this.#slots };
    const sender = new PartSender(newObject(key), shared);
    let part: PartBuffer = this.#buffers.take(1);
    try {
      for await (const piece of pieces) {
        for (let done = 0; done < piece.length;) {
          // A full part is sent when more bytes come, so the last one is never empty.
          if (part.isFull) part = await sender.send(part);
          done += part.write(piece, done);
        }
        this.#onPassed(piece.length);
      }
      if (sender.hasSent) return await sender.finish(part);
    } catch (error) {
      await sender.abort();
      throw error;
    }
    const result = await this.#putWhole(key, part.bytes);
    this.#buffers.give(part);
    return result;
  }

  #putWhole(key: string, bytes: Uint8Array): Promise<PutResult> {
    const { client, encryption, at, limited } = this.#bucket;
    const object = newObject(key);
    const command = new PutObjectCommand({
      ...at(key),
      ...encryption,
      Body: bytes,
      ContentLength: bytes.length,
      IfNoneMatch: '*',
      Metadata: writerMetadata(object.writer),
    });
    const request = limited(command, bytes.length);
    return writeIfAbsent(this.#bucket, object, () => client.send(request));
  }
}
