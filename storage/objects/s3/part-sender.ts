import type { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import type { PutResult } from '../../object-store';
import type { NewObject } from './conditional-write';
import { MultipartUpload } from './multipart-upload';
import type { PartBuffer, PartBuffers } from './part-buffers';
import type { S3Bucket } from './s3-bucket';

/** Of one object. A third part is filled while they are sent. */
const PARTS_IN_FLIGHT = 2;

/** What all writes of a store share. */
export interface SharedParts {
  readonly bucket: S3Bucket;
  readonly buffers: PartBuffers;
  readonly slots: ConcurrencyLimit;
}

/** Sends the parts of one object while the next one is filled. */
export class PartSender {
  readonly #object: NewObject;
  readonly #shared: SharedParts;
  readonly #inFlight = new Set<Promise<void>>();
  #upload: MultipartUpload | null = null;
  #count = 0;
  #failure: { readonly error: unknown } | null = null;

  constructor(object: NewObject, shared: SharedParts) {
    this.#object = object;
    this.#shared = shared;
  }

  get hasSent(): boolean {
    return this.#count > 0;
  }

  /** Starts to send a part. Returns a buffer for the next one. @throws object_store_failed */
  async send(part: PartBuffer): Promise<PartBuffer> {
    this.#start(await this.#open(), part);
    while (this.#inFlight.size >= PARTS_IN_FLIGHT) await Promise.race(this.#inFlight);
    this.#throwFailure();
    return this.#shared.buffers.take(this.#count + 1);
  }

  /** Sends the last part and completes the object. @throws object_store_failed */
  async finish(part: PartBuffer): Promise<PutResult> {
    const upload = await this.#open();
    this.#start(upload, part);
    await Promise.all(this.#inFlight);
    this.#throwFailure();
    return upload.complete();
  }

  /** Removes what was sent. Never throws. */
  async abort(): Promise<void> {
    await this.#upload?.abort();
  }

  async #open(): Promise<MultipartUpload> {
    const { bucket } = this.#shared;
    this.#upload ??= await MultipartUpload.begin(bucket, this.#object, { copies: false });
    return this.#upload;
  }

  /** A failure is kept for the next caller: no promise of a part rejects. */
  #start(upload: MultipartUpload, part: PartBuffer): void {
    const { slots, buffers } = this.#shared;
    const number = ++this.#count;
    const sent = slots
      .run(() => upload.send(number, part.bytes))
      .then(
        () => buffers.give(part),
        (error: unknown) => void (this.#failure ??= { error }),
      );
    const done = sent.finally(() => this.#inFlight.delete(done));
    this.#inFlight.add(done);
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}
