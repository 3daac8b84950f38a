import type { Readable } from 'node:stream';
import {
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type HeadObjectCommandOutput,
} from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket';
import { hasName, mapped, missingObject, s3Error, statusOf } from './s3-errors';

/** Name of the metadata field that tells the writes of one object apart. */
const WRITER_FIELD = 'writer';

/** What S3 tells of an object without its bytes. */
export interface S3ObjectHead {
  readonly size: number;
  readonly etag: string;
  /** The id that the writer of the object gave it; null for objects that another tool has written. */
  readonly writer: string | null;
}

/** Metadata that names the writer of an object. */
export function writerMetadata(writer: string): Record<string, string> {
  return { [WRITER_FIELD]: writer };
}

/**
 * Looks up an object that may be missing; null if S3 says that it is. Asks for its first byte: the 404 to a HEAD request is
 * the same for a missing object, a missing bucket and an address that is no S3 service.
 * @throws object_store_failed
 */
export async function lookUp(bucket: S3Bucket, key: string): Promise<S3ObjectHead | null> {
  try {
    const read = await readHead(bucket, key).catch(nullIfNoFirstByte);
    return read ?? (await requestHead(bucket, key));
  } catch (error) {
    if (hasName(error, 'NoSuchKey')) return null;
    throw s3Error(error, `look up ${key}`, bucket);
  }
}

/** Looks up an object that should be there. @throws object_missing, object_store_failed */
export async function lookUpExisting(bucket: S3Bucket, key: string): Promise<S3ObjectHead> {
  try {
    return await requestHead(bucket, key);
  } catch (error) {
    if (statusOf(error) !== 404) throw s3Error(error, `look up ${key}`, bucket);
  }
  const found = await lookUp(bucket, key);
  if (found === null) throw missingObject(key);
  return found;
}

/** Null if the service ignores the range. Errors are those of the SDK. */
async function readHead(bucket: S3Bucket, key: string): Promise<S3ObjectHead | null> {
  const { client, at } = bucket;
  const found = await client.send(new GetObjectCommand({ ...at(key), Range: 'bytes=0-0' }));
  const body = (found.Body as Readable).on('error', () => undefined);
  const [, size] = /^bytes 0-0\/(\d+)$/.exec(found.ContentRange ?? '') ?? [];
  if (size === undefined) {
    body.destroy();
    return null;
  }
  await discard(body);
  return { ...toHead(found), size: Number(size) };
}

/** Reads a body to its end, which makes its connection free for the next request. One that stalls ends by itself. */
async function discard(body: Readable): Promise<void> {
  await new Promise((resolve) => body.once('close', resolve).resume());
}

/** For an object that is empty, or lies in an archive. @throws any other error */
function nullIfNoFirstByte(error: unknown): null {
  if (statusOf(error) === 416 || hasName(error, 'InvalidObjectState')) return null;
  throw error;
}

/** Of an object that is known to be there. Errors are those of the SDK. */
async function requestHead({ client, at }: S3Bucket, key: string): Promise<S3ObjectHead> {
  const found = await client.send(new HeadObjectCommand(at(key)));
  return { ...toHead(found), size: found.ContentLength ?? 0 };
}

function toHead({ ETag = '', Metadata }: HeadObjectCommandOutput): Omit<S3ObjectHead, 'size'> {
  return { etag: ETag, writer: Metadata?.[WRITER_FIELD] ?? null };
}

/**
 * Lists at most one object: unlike the answer to a HEAD request, the one to a listing says what is wrong.
 * @throws object_store_failed if the bucket is not there or cannot be used
 */
export async function requireBucket(bucket: S3Bucket, action: string): Promise<void> {
  const { client, name: Bucket, prefix } = bucket;
  const command = new ListObjectsV2Command({ Bucket, Prefix: `${prefix}store-id`, MaxKeys: 1 });
  await mapped(action, bucket, () => client.send(command));
}
