import type { ConcurrencyLimit } from '../../../core/async/concurrency-limit';
import type { PutResult } from '../../object-store';
import type { NewObject } from './conditional-write';
import { MultipartUpload } from './multipart-upload';
import type { PartBuffer, PartBuffers } from './part-buffers';
import type { S3Bucket } from './s3-bucket';

/** Of one object. A fifth part is filled while they are sent. */
const PARTS_IN_FLIGHT = 4;

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
  #upload: Promise<MultipartUpload> | null = null;
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
    this.#start(part);
    while (this.#inFlight.size >= PARTS_IN_FLIGHT) await Promise.race(this.#inFlight);
    this.#throwFailure();
    return this.#shared.buffers.take(this.#count + 1);
  }

  /** Sends the last part and completes the object. @throws object_store_failed */
  async finish(part: PartBuffer): Promise<PutResult> {
    this.#start(part);
    await Promise.all(this.#inFlight);
    this.#throwFailure();
    const upload = await this.#open();
    return upload.complete();
  }

  /** Removes what was sent. Never throws. */
  async abort(): Promise<void> {
    const upload = await this.#upload?.catch(() => null);
    await upload?.abort();
  }

  #open(): Promise<MultipartUpload> {
    const { bucket } = this.#shared;
    return (this.#upload ??= MultipartUpload.begin(bucket, this.#object, { copies: false }));
  }

  /**
   * Also while the upload is being begun: the next part is filled meanwhile. A failure is kept for the next
   * caller: no promise of a part rejects.
   */
  #start(part: PartBuffer): void {
    const { slots, buffers } = this.#shared;
    const number = ++this.#count;
    const sent = slots
      .run(async () => (await this.#open()).send(number, part.bytes))
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
