import { z } from 'zod';
import { nonEmpty, serverKeys, url } from './config-values';

/** A folder of a bucket in S3, which a provider reads from and writes to. */
export const s3Storage = z.strictObject({
  type: z.literal('s3'),
  bucket: nonEmpty,
  /** Beginning of all keys; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  /** Of a service other than AWS. */
  url: url.optional(),
});

/** A folder of a container in Azure Blob Storage. Its key is a token (SAS). */
export const azureStorage = z.strictObject({
  type: z.literal('azure_container'),
  /** Of the container, such as `https://acme.blob.core.windows.net/recordings`. */
  url,
  /** Beginning of all names; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  api_key_name: serverKeys.api_key_name,
  api_key_file: serverKeys.api_key_file,
});

/** A folder of a bucket in Google Cloud Storage. */
export const gcsStorage = z.strictObject({
  type: z.literal('gcs'),
  bucket: nonEmpty,
  /** Beginning of all names; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  url: url.default('https://storage.googleapis.com'),
});

/** The bucket of a provider that works from S3. */
export type S3StorageConfig = z.output<typeof s3Storage>;
/** The container of a provider that works from Azure Blob Storage. */
export type AzureStorageConfig = z.output<typeof azureStorage>;
/** The bucket of a provider that works from Cloud Storage. */
export type GcsStorageConfig = z.output<typeof gcsStorage>;
