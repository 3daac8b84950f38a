import { idempotentResult } from '../call-result';
import type { IdempotentResult } from '../provider';
import { wholeFile } from '../read-file';
import type { SignedUrls } from '../signed-urls';
import { blobReader, withXmlError } from './blob-error';

/** How a file at a signed address is read. */
export interface SignedFileOptions {
  /** A longer file counts as one that is not JSON. */
  readonly maxBytes: number;
  mask(text: string): string;
  readonly signal: AbortSignal;
}

/** The JSON value of a file at a signed address, mostly in Azure Blob Storage; undefined if it is none. */
export async function readSignedJson(
  urls: SignedUrls,
  url: string,
  { maxBytes, mask, signal }: SignedFileOptions,
): Promise<IdempotentResult<{ readonly json: unknown }>> {
  const whole = wholeFile(maxBytes);
  const end = await urls.download(url, whole.take, signal);
  return idempotentResult(
    withXmlError(end),
    blobReader(() => ({ json: whole.json() }), mask),
  );
}
