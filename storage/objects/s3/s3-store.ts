import { randomBytes } from 'node:crypto';
import { DeleteObjectCommand } from '@aws-sdk/client-s3';
import { NightshiftError } from '../../../core/errors';
import type { Range } from '../../../core/range';
import type { ListedObject, ListOptions, ObjectStore } from '../../object-store';
import { concatenateObjects } from './concatenate';
import { listObjects } from './list-objects';
import { lookUp, requireBucket } from './look-up';
import { chunksOf, ObjectBytes } from './object-bytes';
import { ObjectWriter } from './put-object';
import { removeUnfinishedUploads } from './remove-unfinished';
import { openBucket, type S3Bucket, type S3StoreOptions } from './s3-bucket';
import { mapped } from './s3-errors';
import { openS3Reader } from './s3-reader';
import { S3Stream } from './s3-stream';

/** The object with the id of the store. It lies beside the others and is not listed. */
const STORE_ID_KEY = 'store-id';

/**
 * The object store in a bucket of S3, or of a service with conditional writes (`If-None-Match`). Opening
 * looks up the bucket. The caller closes it (docs/design/journal.md#objects-in-s3).
 * @throws config_invalid, object_store_failed
 */
export async function openS3Store(options: S3StoreOptions): Promise<ObjectStore> {
  const bucket = await openBucket(options);
  try {
    await requireBucket(bucket, 'open object store');
  } catch (error) {
    bucket.client.destroy();
    throw error;
  }
  const { onPassed = () => undefined } = options;
  return s3Store(bucket, onPassed);
}

function s3Store(bucket: S3Bucket, onPassed: (bytes: number) => void): ObjectStore {
  const writer = new ObjectWriter(bucket, onPassed);
  const put: ObjectStore['putIfAbsent'] = (key, body) => writer.putIfAbsent(key, body);
  return {
    putIfAbsent: put,
    concatenate: (key, parts, inspector) =>
      concatenateObjects(bucket, writer, { key, parts, inspector }),
    head: async (key) => {
      const found = await lookUp(bucket, key);
      return found === null ? null : { size: found.size };
    },
    read: (key, range) => readRange(bucket, key, range),
    stream: (key, range) => new S3Stream(new ObjectBytes(bucket, { key, range }), onPassed),
    scan: (key, { range, signal } = {}) =>
      chunksOf(new ObjectBytes(bucket, { key, range }), signal),
    open: (key) => openS3Reader(bucket, key),
    list: (prefix, options) => listed(bucket, prefix, options),
    delete: (key) =>
      mapped(`delete ${key}`, bucket, async () => {
        await bucket.client.send(new DeleteObjectCommand(bucket.at(key)));
      }),
    check: () =>
      mapped('check object store', bucket, async () => void (await lookUp(bucket, STORE_ID_KEY))),
    storeId: () => checkedStoreId(bucket, put),
    removeUnfinished: () => removeUnfinishedUploads(bucket, Date.now()),
    close: async () => bucket.client.destroy(),
  };
}

async function readRange(bucket: S3Bucket, key: string, range?: Range): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of chunksOf(new ObjectBytes(bucket, { key, range }))) {
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

async function* listed(
  bucket: S3Bucket,
  prefix: string,
  options?: ListOptions,
): AsyncGenerator<ListedObject> {
  for await (const object of listObjects(bucket, prefix, options)) {
    if (object.key !== STORE_ID_KEY) yield object;
  }
}

/**
 * The id, once the store has refused to write it a second time. A store that ignores `If-None-Match` takes
 * that write, which changes nothing: the bytes are the same.
 * @throws config_invalid on such a store
 */
async function checkedStoreId(bucket: S3Bucket, put: ObjectStore['putIfAbsent']): Promise<string> {
  const id = await readOrCreateStoreId(bucket, put);
  if ((await put(STORE_ID_KEY, Buffer.from(id))) === 'exists') return id;
  const message =
    `bucket ${bucket.name} at ${bucket.place} ignores If-None-Match, so workers could overwrite the plan and the ` +
    'answers of each other: use a store with conditional writes (docs/configuration.md#s3)';
  throw new NightshiftError('config_invalid', message);
}

async function readOrCreateStoreId(
  bucket: S3Bucket,
  put: ObjectStore['putIfAbsent'],
): Promise<string> {
  if ((await lookUp(bucket, STORE_ID_KEY)) === null) {
    await put(STORE_ID_KEY, Buffer.from(randomBytes(16).toString('hex')));
  }
  return (await readRange(bucket, STORE_ID_KEY)).toString('latin1');
}
