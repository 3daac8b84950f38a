import { Readable } from 'node:stream';
import type * as S3Sdk from '@aws-sdk/client-s3';
import { callAws } from '../aws/aws-call';
import { awsClientOptions, type AwsAccess } from '../aws/aws-client';
import type { CallOptions, IdempotentResult, JobInput } from '../provider';
import type { RemoteFolder } from '../remote-folder';

/** A folder of a bucket in S3, or in a service with its API. */
export interface S3FolderSettings {
  readonly bucket: string;
  /** Beginning of all keys: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Such as `eu-central-1`. */
  readonly region: string;
  /** Base URL of a service other than AWS, which gets the bucket in the path; null for AWS. */
  readonly url: string | null;
}

type Sdk = typeof S3Sdk;
/** The SDK is loaded at the first call, which takes about 0.2 s: most installations need none of it. */
interface Opened {
  readonly sdk: Sdk;
  readonly client: S3Sdk.S3Client;
}

/**
 * Opens a folder in S3. It makes no call. An object is written with one request, so it may have at most 5 GB:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html.
 */
export function openS3Folder(settings: S3FolderSettings, access: AwsAccess): RemoteFolder {
  const { bucket, prefix } = settings;
  const root = `s3://${bucket}/${prefix}`;
  const at = (name: string) => ({ Bucket: bucket, Key: prefix + name });
  let opened: Promise<Opened> | null = null;
  const open = (): Promise<Opened> => (opened ??= openClient(settings, access));
  const { mask } = access.credentials;
  const done = { value: () => true as const, mask };
  return {
    uri: (name) => root + name,
    nameOf: (uri) => (uri.startsWith(root) ? uri.slice(root.length) : null),
    put: async (name, input, call) => {
      const { sdk, client } = await open();
      const command = () => new sdk.PutObjectCommand({ ...at(name), ...bodyOf(input) });
      const send = (exchange: object) => client.send(command(), exchange);
      const sent = await callAws({ send, ...done }, { streamedBytes: input.bytes }, call);
      return withoutValue(sent);
    },
    read: async (name, take, call) => readObject(await open(), at(name), { take, mask }, call),
    list: async (start, call) => {
      const { sdk, client } = await open();
      const names: string[] = [];
      for (let token: string | undefined; ;) {
        const page = { Bucket: bucket, Prefix: prefix + start, ContinuationToken: token };
        const send = (exchange: object) =>
          client.send(new sdk.ListObjectsV2Command(page), exchange);
        const value = (output: S3Sdk.ListObjectsV2CommandOutput) =>
          canGoOn(output, token) ? output : null;
        const listed = await callAws({ send, value, mask }, {}, call);
        if (listed.outcome !== 'ok') return listed;
        const { Contents = [], IsTruncated, NextContinuationToken } = listed.value;
        names.push(...Contents.map(({ Key = '' }) => Key.slice(prefix.length)));
        if (IsTruncated !== true) return { outcome: 'ok', value: names };
        token = NextContinuationToken;
      }
    },
    delete: async (name, call) => {
      const { sdk, client } = await open();
      const send = (exchange: object) =>
        client.send(new sdk.DeleteObjectCommand(at(name)), exchange);
      const sent = await callAws({ send, ...done }, {}, call);
      return sent.outcome === 'gone' ? { outcome: 'ok', value: undefined } : withoutValue(sent);
    },
  };
}

/** Whether a page is the last one, or names another one: without a new token the list would be read forever. */
function canGoOn(
  { IsTruncated, NextContinuationToken: next }: S3Sdk.ListObjectsV2CommandOutput,
  token: string | undefined,
): boolean {
  return IsTruncated !== true || (next !== undefined && next !== token);
}

async function openClient({ region, url }: S3FolderSettings, access: AwsAccess): Promise<Opened> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({
    ...awsClientOptions(access),
    region,
    ...(url === null ? {} : { endpoint: url, forcePathStyle: true }),
    // The checksums of single requests need bodies in a coding of their own, which some services refuse.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return { sdk, client };
}

function bodyOf(input: JobInput): { readonly Body: Readable; readonly ContentLength: number } {
  return { Body: Readable.from(input.open()), ContentLength: input.bytes };
}

function withoutValue(result: IdempotentResult<true>): IdempotentResult<void> {
  return result.outcome === 'ok' ? { outcome: 'ok', value: undefined } : result;
}

/** The error of `take` ends the request, and is thrown. */
async function readObject(
  { sdk, client }: Opened,
  object: { readonly Bucket: string; readonly Key: string },
  { take, mask }: { take(piece: Buffer): Promise<void>; mask(text: string): string },
  call: CallOptions,
): Promise<IdempotentResult<void>> {
  let fault: { readonly error: unknown } | null = null;
  const keepFault = (error: unknown): never => {
    fault = { error };
    throw error;
  };
  const send = async (exchange: object): Promise<true> => {
    const { Body } = await client.send(new sdk.GetObjectCommand(object), exchange);
    for await (const piece of Body as AsyncIterable<Buffer>) await take(piece).catch(keepFault);
    return true;
  };
  const value = (isWhole: true): true => isWhole;
  const read = await callAws({ send, value, mask }, { isDownload: true }, call);
  if (fault !== null) throw (fault as { readonly error: unknown }).error;
  return withoutValue(read);
}
