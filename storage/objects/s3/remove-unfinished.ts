import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type MultipartUpload,
} from '@aws-sdk/client-s3';
import type { S3Bucket } from './s3-bucket';
import { hasName, mapped } from './s3-errors';

const STALE_MS = 24 * 3_600_000;

/**
 * Removes uploads under the prefix that were begun more than a day before `nowMs` and never completed.
 * Returns their number. @throws object_store_failed
 */
export function removeUnfinishedUploads(bucket: S3Bucket, nowMs: number): Promise<number> {
  return mapped('remove unfinished uploads', bucket, async () => {
    let removed = 0;
    for await (const upload of unfinishedUploads(bucket)) {
      const begunAtMs = upload.Initiated?.getTime() ?? nowMs;
      if (nowMs - begunAtMs <= STALE_MS) continue;
      if (await removeUpload(bucket, upload)) removed++;
    }
    return removed;
  });
}

async function* unfinishedUploads(bucket: S3Bucket): AsyncGenerator<MultipartUpload> {
  let after: { KeyMarker?: string; UploadIdMarker?: string } = {};
  for (;;) {
    const page = await bucket.client.send(
      new ListMultipartUploadsCommand({ Bucket: bucket.name, Prefix: bucket.prefix, ...after }),
    );
    yield* page.Uploads ?? [];
    const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = page;
    if (IsTruncated !== true || NextKeyMarker === undefined) return;
    after = {
      KeyMarker: NextKeyMarker,
      ...(NextUploadIdMarker === undefined ? {} : { UploadIdMarker: NextUploadIdMarker }),
    };
  }
}

/** False if another process has removed or completed it meanwhile. */
async function removeUpload(
  bucket: S3Bucket,
  { Key, UploadId }: MultipartUpload,
): Promise<boolean> {
  const command = new AbortMultipartUploadCommand({ Bucket: bucket.name, Key, UploadId });
  try {
    await bucket.client.send(command);
    return true;
  } catch (error) {
    if (hasName(error, 'NoSuchUpload')) return false;
    throw error;
  }
}
