import { z } from 'zod';
import { googleKeys, speechUrl } from './config-google-cloud';
import { locales, markedKeys, providerKeys } from './config-provider-keys';
import { azureStorage, s3Storage } from './config-provider-storage';
import { count, nonEmpty, url } from './config-values';

/** The types of providers that transcribe recordings (docs/providers.md#transcription). */
export const recordingProviders = [
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
] as const;
