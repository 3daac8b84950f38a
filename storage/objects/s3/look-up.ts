import { HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket';
import { mapped, missingObject, s3Error, statusOf } from './s3-errors';

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
 * Looks up an object; null if S3 says that it is missing. A 404 to a HEAD request is the same for a missing
 * object, a missing bucket and an address that is no S3 service, so the bucket is looked up too.
 * @throws object_store_failed
 */
export async function lookUp(bucket: S3Bucket, key: string): Promise<S3ObjectHead | null> {
  const action = `look up ${key}`;
  try {
    const found = await bucket.client.send(new HeadObjectCommand(bucket.at(key)));
    return {
      size: found.ContentLength ?? 0,
      etag: found.ETag ?? '',
      writer: found.Metadata?.[WRITER_FIELD] ?? null,
    };
  } catch (error) {
    if (statusOf(error) !== 404) throw s3Error(error, action, bucket);
    await requireBucket(bucket, action);
    return null;
  }
}

/** The same for an object that must be there. @throws object_missing, object_store_failed */
export async function lookUpExisting(bucket: S3Bucket, key: string): Promise<S3ObjectHead> {
  const found = await lookUp(bucket, key);
  if (found === null) throw missingObject(key);
  return found;
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
