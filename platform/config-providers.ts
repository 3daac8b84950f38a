import { z } from 'zod';
import {
  count,
  duration,
  durationText,
  nonEmpty,
  numberIn,
  serverKeys,
  size,
  url,
} from './config-values';

const price = numberIn(0, 1_000_000, 'a price in USD per million tokens');

/** Part of task queue names, metrics and rows. */
const providerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'expected a name of lower-case letters, digits, - and _');

const providerKeys = {
  ...serverKeys,
  /** Of calls that carry no file. */
  request_timeout: duration('60s'),
  /** Of uploads and downloads. */
  transfer_timeout: duration('2h'),
  /** Of one attempt to create a job. */
  create_lease: duration('90s'),
  /** How long a create whose answer was lost may still take effect. Without it: what the type states. */
  create_settle: durationText.optional(),
  poll_initial: duration('30s'),
  poll_max: duration('10m'),
  job_timeout: duration('26h'),
  max_open_jobs: count.prefault(10),
  max_enqueued_tokens: count.optional(),
  max_lines: count.prefault(50_000),
  max_bytes: size('190MiB'),
  min_lines: count.prefault(1),
  /** Whether inputs and results of jobs stay at the provider. */
  keep_remote: z.boolean().default(false),
};

/** A folder of a bucket in S3, which a provider reads from and writes to. */
const s3Storage = z.strictObject({
  type: z.literal('s3'),
  bucket: nonEmpty,
  /** Beginning of all keys; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  /** Of a service other than AWS. */
  url: url.optional(),
});

/** A folder of a container in Azure Blob Storage. Its key is a token (SAS). */
const azureStorage = z.strictObject({
  type: z.literal('azure_container'),
  /** Of the container, such as `https://acme.blob.core.windows.net/recordings`. */
  url,
  /** Beginning of all names; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  api_key_name: serverKeys.api_key_name,
  api_key_file: serverKeys.api_key_file,
});

/** The service identifies one of these languages. */
const locales = z.array(nonEmpty).min(1).max(10).default(['en-US']);

/** Of types whose list shows our marker. */
const markedKeys = {
  /** Whether jobs of this installation that no row knows are cancelled. */
  cancel_orphans: z.boolean().default(false),
};

/** A folder of a bucket in Google Cloud Storage. */
const gcsStorage = z.strictObject({
  type: z.literal('gcs'),
  bucket: nonEmpty,
  /** Beginning of all names; without a slash at its end, one is added. */
  prefix: z.string().default(''),
  url: url.default('https://storage.googleapis.com'),
});

/** What all services of Google Cloud need. */
const googleKeys = {
  url: url.optional(),
  /** Id of the project. */
  project: nonEmpty,
  /** A region, a multi-region such as `eu`, or `global`. */
  location: nonEmpty,
  storage: gcsStorage,
};

/** https://cloud.google.com/speech-to-text/v2/docs/locations */
function speechUrl(location: string): string {
  return `https://${location === 'global' ? '' : `${location}-`}speech.googleapis.com`;
}

/** https://cloud.google.com/vertex-ai/docs/reference/rest#rest_endpoints; multi-regions have names of their own. */
function vertexUrl(location: string): string {
  if (location === 'us' || location === 'eu') {
    return `https://aiplatform.${location}.rep.googleapis.com`;
  }
  return `https://${location === 'global' ? '' : `${location}-`}aiplatform.googleapis.com`;
}

const provider = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('openai'), ...providerKeys, ...markedKeys }),
  z.strictObject({
    type: z.literal('azure_openai'),
    ...providerKeys,
    ...markedKeys,
    max_lines: count.prefault(100_000),
  }),
  z.strictObject({ type: z.literal('nightshift'), ...providerKeys, ...markedKeys }),
  z.strictObject({ type: z.literal('mistral'), ...providerKeys, ...markedKeys }),
  z.strictObject({ type: z.literal('groq'), ...providerKeys, ...markedKeys }),
  z.strictObject({
    type: z.literal('together'),
    ...providerKeys,
    max_bytes: size('95MiB'),
  }),
  z.strictObject({
    type: z.literal('azure_speech'),
    ...providerKeys,
    api_version: nonEmpty.default('2024-11-15'),
    /** Of recordings whose lines state no language. */
    locales,
    storage: azureStorage,
    max_open_jobs: count.prefault(100),
    max_lines: count.prefault(1_000),
  }),
  z.strictObject({
    type: z.literal('sarvam'),
    ...providerKeys,
    url: url.default('https://api.sarvam.ai'),
    max_open_jobs: count.prefault(100),
    max_lines: count.prefault(20),
  }),
  z
    .strictObject({
      type: z.literal('aws_transcribe'),
      ...providerKeys,
      /** Without it: the address of the service in the region. */
      url: url.optional(),
      region: nonEmpty,
      storage: s3Storage,
      /** With it, jobs beyond the quota of the account wait for their turn there. */
      data_access_role_arn: nonEmpty.optional(),
      max_open_jobs: count.prefault(100),
      max_lines: count.prefault(1),
    })
    .transform((one) => ({
      ...one,
      url: one.url ?? `https://transcribe.${one.region}.amazonaws.com`,
    })),
  z
    .strictObject({
      type: z.literal('bedrock'),
      ...providerKeys,
      ...markedKeys,
      /** Without it: the address of the service in the region. */
      url: url.optional(),
      region: nonEmpty,
      /** The role with which Bedrock reads inputs and writes results. */
      role_arn: nonEmpty,
      storage: s3Storage,
      /** What most models take at least. */
      min_lines: count.prefault(100),
    })
    .transform((one) => ({
      ...one,
      url: one.url ?? `https://bedrock.${one.region}.amazonaws.com`,
    })),
  z.strictObject({
    type: z.literal('anthropic'),
    ...providerKeys,
    url: url.prefault('https://api.anthropic.com'),
    /** Of the API, as the header `anthropic-version`. */
    api_version: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2}$/, 'expected a date such as 2023-06-01')
      .default('2023-06-01'),
    /** Whether only this installation creates jobs in the workspace of the key. */
    exclusive: z.boolean().default(false),
    max_lines: count.prefault(10_000),
  }),
  z.strictObject({
    type: z.literal('gemini'),
    ...providerKeys,
    ...markedKeys,
    url: url.prefault('https://generativelanguage.googleapis.com'),
    job_timeout: duration('50h'),
  }),
  z
    .strictObject({
      type: z.literal('vertex'),
      ...providerKeys,
      ...markedKeys,
      ...googleKeys,
      job_timeout: duration('98h'),
      max_lines: count.prefault(200_000),
      max_bytes: size('950MiB'),
    })
    .transform((entry) => ({ ...entry, url: entry.url ?? vertexUrl(entry.location) })),
  z
    .strictObject({
      type: z.literal('google_speech'),
      ...providerKeys,
      ...markedKeys,
      ...googleKeys,
      /** Of recordings whose lines state no language; models differ in how many they take. */
      locales,
      max_open_jobs: count.prefault(100),
      max_lines: count.prefault(15),
    })
    .transform((entry) => ({ ...entry, url: entry.url ?? speechUrl(entry.location) })),
]);

const delegate = z.strictObject({
  /** An entry of `providers`. */
  provider: nonEmpty,
  /** The provider's name of the model; without it, the name that clients use. */
  model: nonEmpty.optional(),
  /** Without it: `gateway` if `model_gateways` names the model, else `none`. */
  fallback: z.enum(['none', 'gateway']).optional(),
  fallback_before: duration('4h'),
  cancel_lead: duration('15m'),
  min_window: duration('0s'),
  generations: count.prefault(2),
  /** Empty: all tenants. */
  tenants: z.array(nonEmpty).default([]),
  /** Drops what the provider's format cannot express, instead of refusing the line. */
  drop_params: z.boolean().default(false),
  /** Of lines that state no limit, for formats that demand one. Without it: 4096. */
  default_max_tokens: count.optional(),
  /** Members of each translated request, in the provider's format. */
  extra_body: z.record(z.string(), z.unknown()).default({}),
  /** USD per million tokens. */
  price: z.strictObject({ input: price, cached: price.optional(), output: price }).optional(),
});

/** Settings of delegation (docs/design/delegation.md). */
export const delegationSections = {
  providers: z.record(providerName, provider).default({}),
  /** By the model name that clients use. */
  delegates: z.record(nonEmpty, delegate).default({}),
};

/** One account at one service. */
export type ProviderConfig = z.output<typeof provider>;
/** The bucket of a provider that works from S3. */
export type S3StorageConfig = z.output<typeof s3Storage>;
/** The container of a provider that works from Azure Blob Storage. */
export type AzureStorageConfig = z.output<typeof azureStorage>;
/** The bucket of a provider that works from Cloud Storage. */
export type GcsStorageConfig = z.output<typeof gcsStorage>;
/** How one model is delegated. */
export type DelegateConfig = z.output<typeof delegate>;
