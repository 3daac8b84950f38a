import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type OpenAI from 'openai';
import { serviceAccountKey } from '../../providers/service-account-key';
import { chatLines, submit } from '../../support/stack';
import { submitRecordings } from './recordings';

/** A provider that rounds of faults are played at. */
export interface AdapterUnderTest {
  /** Name of the provider, and of the model that is delegated to it. */
  readonly name: string;
  /** Its entry in `providers`, at the simulator's URL. */
  settings(url: string): object;
  /** Creates a batch of `lines` lines with the ids `c-0` and so on. Default: chats. */
  submit?(client: OpenAI, model: string, lines: number): Promise<OpenAI.Batches.Batch>;
}

/** Common settings: looks and leases that are short enough for a round. */
export const FAST = {
  ...{ poll_initial: '300ms', poll_max: '1s', request_timeout: '5s' },
  ...{ create_lease: '10s', create_settle: '2s' },
} as const;

/**
 * One for each API. Dialects of OpenAI's add nothing, and a type that is looked at once a minute makes rounds as long
 * as that.
 */
export const ADAPTERS: readonly AdapterUnderTest[] = [
  { name: 'openai', settings: (url) => ({ type: 'openai', url: `${url}/providers/openai/v1` }) },
  { name: 'mistral', settings: (url) => ({ type: 'mistral', url: `${url}/providers/mistral/v1` }) },
  { name: 'gemini', settings: (url) => ({ type: 'gemini', url: `${url}/providers/gemini` }) },
  {
    name: 'anthropic',
    settings: (url) => ({ type: 'anthropic', url: `${url}/providers/anthropic` }),
  },
  {
    name: 'bedrock',
    settings: (url) => ({
      ...{ type: 'bedrock', url: `${url}/providers/bedrock`, region: 'eu-central-1', min_lines: 1 },
      ...{ role_arn: 'arn:aws:iam::000000000000:role/batch' },
      storage: { type: 's3', bucket: 'bucket', prefix: 'n/', url: `${url}/providers/s3` },
    }),
  },
  {
    name: 'aws_transcribe',
    settings: (url) => ({
      ...{ type: 'aws_transcribe', url: `${url}/providers/transcribe`, region: 'eu-central-1' },
      ...{ storage: { type: 's3', bucket: 'recordings', url: `${url}/providers/s3` } },
      ...{ max_lines: 1, create_settle: '0s' },
    }),
    submit: submitRecordings,
  },
  {
    name: 'vertex',
    settings: (url) => ({
      ...{ type: 'vertex', url: `${url}/providers/vertex`, project: 'p', location: 'us-central1' },
      ...googleCloud(url),
    }),
  },
  {
    name: 'google_speech',
    settings: (url) => ({
      ...{ type: 'google_speech', url: `${url}/providers/google-speech` },
      ...{ project: 'p', location: 'us', ...googleCloud(url) },
    }),
    submit: submitRecordings,
  },
  {
    name: 'sarvam',
    settings: (url) => ({
      ...{ type: 'sarvam', url: `${url}/providers/sarvam`, max_lines: 6, create_settle: '0s' },
    }),
    submit: submitRecordings,
  },
];

/** The service account and the bucket of a provider at Google Cloud. */
function googleCloud(url: string): object {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'service-account-')), 'key.json');
  writeFileSync(file, serviceAccountKey('key', `${url}/providers/google-oauth/token`));
  const storage = { type: 'gcs', bucket: 'bucket', prefix: 'n/', url: `${url}/providers/gcs` };
  return { api_key_file: file, storage };
}

/** Keys of providers that are found in the environment. */
export const ENVIRONMENT = { AWS_ACCESS_KEY_ID: 'key', AWS_SECRET_ACCESS_KEY: 'secret' } as const;

/** Creates a batch for an adapter. */
export function submitTo(
  { name, submit: submitOwn }: AdapterUnderTest,
  client: OpenAI,
  lines: number,
): Promise<OpenAI.Batches.Batch> {
  if (submitOwn !== undefined) return submitOwn(client, name, lines);
  return submit(
    client,
    chatLines(lines, () => name),
  );
}
