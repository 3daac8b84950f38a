import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { ListedObject, ListOptions } from '../../object-store';
import { requirePrefix } from '../object-key';
import type { S3Bucket } from './s3-bucket';
import { mapped } from './s3-errors';

/** How many keys the first page behind a key has at most: reading a page of 1,000 takes about 30 ms. */
const FEW_KEYS = 100;

/**
 * Objects whose key begins with `prefix`, in key order: S3 lists keys by their bytes. One request for 1,000
 * objects. @throws object_store_failed
 */
export async function* listObjects(
  bucket: S3Bucket,
  prefix: string,
  { after }: ListOptions = {},
): AsyncGenerator<ListedObject> {
  const Prefix = bucket.prefix + requirePrefix(prefix);
  const begin = after === undefined ? {} : { StartAfter: bucket.prefix + after, MaxKeys: FEW_KEYS };
  let token: string | undefined;
  do {
    const command = new ListObjectsV2Command({
      Bucket: bucket.name,
      Prefix,
      ...(token === undefined ? begin : { ContinuationToken: token }),
    });
    const page = await mapped(`list ${prefix}`, bucket, () => bucket.client.send(command));
    for (const { Key = '', Size: size = 0, LastModified: writtenAt } of page.Contents ?? []) {
      const key = Key.slice(bucket.prefix.length);
      yield { key, size, writtenAtMs: writtenAt?.getTime() ?? 0 };
    }
    token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
  } while (token !== undefined);
}
