import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3';
import { NightshiftError } from '../../../core/errors';
import type { PutResult } from '../../object-store';
import { writeIfAbsent, type NewObject } from './conditional-write';
import { writerMetadata } from './look-up';
import type { S3Bucket } from './s3-bucket';
import { mapped } from './s3-errors';

/** An object of the same bucket that becomes a part. */
export interface CopiedPart {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
}

/**
 * One object in parts. Nothing is visible under its key until `complete`, which makes it visible whole or
 * not at all. The caller ends every upload with `complete` or `abort`; after a crash, the parts cost
 * storage until unfinished uploads are removed.
 */
export class MultipartUpload {
  readonly #bucket: S3Bucket;
  readonly #object: NewObject;
  readonly #id: string;
  readonly #parts: CompletedPart[] = [];
  readonly #cancel = new AbortController();
  readonly #requests = new Set<Promise<unknown>>();

  private constructor(bucket: S3Bucket, object: NewObject, id: string) {
    this.#bucket = bucket;
    this.#object = object;
    this.#id = id;
  }

  /**
   * @param copies Whether the parts are copied on the server. S3 then takes over their checksums, and a
   *   checksum algorithm for the upload would have to match them.
   * @throws object_store_failed
   */
  static async begin(
    bucket: S3Bucket,
    object: NewObject,
    { copies }: { readonly copies: boolean },
  ): Promise<MultipartUpload> {
    const create = new CreateMultipartUploadCommand({
      ...bucket.at(object.key),
      ...bucket.encryption,
      Metadata: writerMetadata(object.writer),
      ...(bucket.hasChecksums && !copies ? { ChecksumAlgorithm: 'CRC32' } : {}),
    });
    const action = `write ${object.key}`;
    const { UploadId: id } = await mapped(action, bucket, () => bucket.client.send(create));
    if (id !== undefined) return new MultipartUpload(bucket, object, id);
    throw new NightshiftError('object_store_failed', `${action}: the store named no upload`);
  }

  /** Sends part `number`, counted from 1. `bytes` must not change meanwhile. @throws object_store_failed */
  async send(number: number, bytes: Buffer): Promise<void> {
    const command = new UploadPartCommand({
      ...this.#part(number),
      Body: bytes,
      ContentLength: bytes.length,
    });
    const { client, limited } = this.#bucket;
    const request = limited(command, bytes.length, this.#cancel.signal);
    const sent = await this.#request(() => client.send(request));
    const { ETag, ChecksumCRC32 } = sent;
    this.#add(number, {
      ...(ETag === undefined ? {} : { ETag }),
      ...(ChecksumCRC32 === undefined || !this.#bucket.hasChecksums ? {} : { ChecksumCRC32 }),
    });
  }

  /** Makes a whole object part `number`, on the server. Errors are those of the SDK. */
  async copy(number: number, { key, size, etag }: CopiedPart): Promise<void> {
    const source = this.#bucket.at(key);
    const command = new UploadPartCopyCommand({
      ...this.#part(number),
      CopySource: `${source.Bucket}/${source.Key}`,
      CopySourceIfMatch: etag,
    });
    const { client, limited } = this.#bucket;
    const run = client.send(limited(command, size, this.#cancel.signal));
    const { CopyPartResult: copied } = await this.#track(run);
    this.#add(number, copied?.ETag === undefined ? {} : { ETag: copied.ETag });
  }

  /** Makes the object visible if its key is free. Every part must have been sent. @throws object_store_failed */
  async complete(): Promise<PutResult> {
    const parts = this.#parts.toSorted((a, b) => (a.PartNumber ?? 0) - (b.PartNumber ?? 0));
    const command = new CompleteMultipartUploadCommand({
      ...this.#upload(),
      IfNoneMatch: '*',
      MultipartUpload: { Parts: parts },
    });
    const { client } = this.#bucket;
    const result = await writeIfAbsent(this.#bucket, this.#object, () => client.send(command));
    if (result === 'exists') await this.abort();
    return result;
  }

  /**
   * Stops requests and removes what was sent. Never throws: what cannot be removed now is removed with the
   * unfinished uploads. Waits for its requests first, because a part that arrives later would stay.
   */
  async abort(): Promise<void> {
    this.#cancel.abort();
    await Promise.allSettled(this.#requests);
    const command = new AbortMultipartUploadCommand(this.#upload());
    await this.#bucket.client.send(command).catch(() => undefined);
  }

  #upload() {
    return { ...this.#bucket.at(this.#object.key), UploadId: this.#id };
  }

  #part(number: number) {
    return { ...this.#upload(), PartNumber: number };
  }

  #add(number: number, part: Omit<CompletedPart, 'PartNumber'>): void {
    this.#parts.push({ ...part, PartNumber: number });
  }

  #request<T>(run: () => Promise<T>): Promise<T> {
    return mapped(`write ${this.#object.key}`, this.#bucket, () => this.#track(run()));
  }

  #track<T>(request: Promise<T>): Promise<T> {
    const settled = request.catch(() => undefined);
    this.#requests.add(settled);
    void settled.then(() => this.#requests.delete(settled));
    return request;
  }
}
