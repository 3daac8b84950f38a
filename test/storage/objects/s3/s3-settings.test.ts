import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configSchema, type Config } from '../../../../platform/config-schema';
import { s3OptionsOf } from '../../../../storage/objects/s3/s3-settings';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'nightshift-settings-'))));
afterEach(() => rmSync(folder, { recursive: true }));

type S3Settings = Extract<Config['object_store'], { type: 's3' }>;

function settings(given: Record<string, unknown>): S3Settings {
  const object_store = { type: 's3', bucket: 'batches', ...given };
  const url = 'http://127.0.0.1:1';
  const config = configSchema.parse({ object_store, global_inference_gateway: { url } });
  return config.object_store as S3Settings;
}

it('turns every setting of the bucket into an option, without those that are not set', () => {
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, 'the secret\n');
  expect(s3OptionsOf(settings({}))).toEqual({
    bucket: 'batches',
    prefix: '',
    usePathStyle: false,
    requestTimeoutMs: 30_000,
  });
  const all = settings({
    region: 'eu-west-1',
    endpoint: 'http://s3.internal:9000',
    prefix: 'team/one',
    use_path_style: true,
    server_side_encryption: 'aws:kms',
    kms_key_id: 'key-1',
    access_key_id: 'id',
    secret_access_key_file: secretFile,
    request_timeout: '10s',
  });
  expect(s3OptionsOf(all)).toEqual({
    bucket: 'batches',
    region: 'eu-west-1',
    endpoint: 'http://s3.internal:9000',
    prefix: 'team/one',
    usePathStyle: true,
    encryption: 'aws:kms',
    kmsKeyId: 'key-1',
    credentials: { accessKeyId: 'id', secretAccessKey: 'the secret' },
    requestTimeoutMs: 10_000,
  });
});

it('names the file of a secret access key that is missing or empty', () => {
  const file = join(folder, 'secret');
  const given = settings({ access_key_id: 'id', secret_access_key_file: file });
  const invalid = (text: string) =>
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(text) });
  expect(() => s3OptionsOf(given)).toThrow(invalid(`cannot read ${file}`));
  writeFileSync(file, '\n');
  expect(() => s3OptionsOf(given)).toThrow(invalid(`${file} is empty`));
});
