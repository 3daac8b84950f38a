import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A provider that rounds of faults are played at. */
export interface AdapterUnderTest {
  /** Name of the provider, and of the model that is delegated to it. */
  readonly name: string;
  /** Its entry in `providers`, at the simulator's URL. */
  settings(url: string): object;
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
  {
    name: 'bedrock',
    settings: (url) => ({
      ...{ type: 'bedrock', url: `${url}/providers/bedrock`, region: 'eu-central-1', min_lines: 1 },
      ...{ role_arn: 'arn:aws:iam::000000000000:role/batch', api_key_file: accessKeyFile() },
      storage: { type: 's3', bucket: 'bucket', prefix: 'n/', url: `${url}/providers/s3` },
    }),
  },
];

/** A file with an access key, which signs the calls to AWS. */
function accessKeyFile(): string {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'access-key-')), 'key');
  writeFileSync(file, 'AKIA:secret');
  return file;
}
