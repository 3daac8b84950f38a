import { z } from 'zod';
import { googleKeys, vertexUrl } from './config-google-cloud';
import { markedKeys, providerKeys } from './config-provider-keys';
import { s3Storage } from './config-provider-storage';
import { count, duration, nonEmpty, size, url } from './config-values';

/** The types of providers for chats and embeddings (docs/providers.md). */
export const chatProviders = [
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
] as const;
