import { loadConfig } from '../../platform/config';
import { printConfig } from '../../platform/config-print';

const BUCKET = { type: 's3', bucket: 'b' };

function load(settings: object) {
  const { object_store } = loadConfig({
    env: {},
    needs: [],
    overrides: { object_store: settings },
  });
  return object_store;
}

it('fills in the defaults of a bucket', () => {
  expect(load(BUCKET)).toEqual({
    type: 's3',
    bucket: 'b',
    prefix: '',
    use_path_style: false,
    request_timeout: 30_000,
    flush_interval: 1_000,
    segment_bytes: 1024 ** 2,
    cache_bytes: 1024 ** 3,
  });
});

it('takes a bucket from the environment', () => {
  const env = {
    NIGHTSHIFT__OBJECT_STORE__TYPE: 's3',
    NIGHTSHIFT__OBJECT_STORE__BUCKET: 'b',
    NIGHTSHIFT__OBJECT_STORE__USE_PATH_STYLE: 'true',
    NIGHTSHIFT__OBJECT_STORE__FLUSH_INTERVAL: '250ms',
    NIGHTSHIFT__OBJECT_STORE__CACHE_BYTES: '0',
  };
  const { object_store } = loadConfig({ env, needs: [] });
  expect(object_store).toMatchObject({ use_path_style: true, flush_interval: 250, cache_bytes: 0 });
});

it.each([
  [{ bucket: '' }, 'bucket: expected a text that is not empty'],
  [{ endpoint: 'minio:9000' }, 'endpoint: expected an http:// or https:// URL'],
  [{ endpoint: 'http://me:pw@s3' }, 'endpoint: must not contain a user'],
  [{ endpoint: 'http://s3/?token=pw' }, 'endpoint: must not contain a user, a password or a query'],
  [{ prefix: '/a' }, 'prefix: expected names such as team/nightshift'],
  [{ prefix: 'a/../b' }, 'prefix: must not contain . or ..'],
  [{ kms_key_id: 'k' }, 'kms_key_id: is only used with server_side_encryption: aws:kms'],
  [
    { kms_key_id: 'k', server_side_encryption: 'AES256' },
    'kms_key_id: is only used with server_side_encryption: aws:kms',
  ],
  [{ server_side_encryption: 'aes' }, 'server_side_encryption: expected one of AES256, aws:kms'],
  [
    { access_key_id: 'a' },
    'secret_access_key_file: access_key_id and secret_access_key_file belong',
  ],
  [
    { secret_access_key_file: 'f' },
    'access_key_id: access_key_id and secret_access_key_file belong',
  ],
  [{ secret_access_key: 's' }, 'secret_access_key: unknown key'],
  [{ request_timeout: '0' }, 'request_timeout: must be longer than 0'],
  [{ flush_interval: '0' }, 'flush_interval: must be longer than 0'],
  [{ flush_interval: '2m' }, 'flush_interval: must be longer than 0 and at most 60s'],
  [{ segment_bytes: '1KiB' }, 'segment_bytes: must be between 64KiB and 64MiB'],
  [{ segment_bytes: '1GiB' }, 'segment_bytes: must be between 64KiB and 64MiB'],
])('refuses a bucket with %j', (change, expected) => {
  expect(() => load({ ...BUCKET, ...change })).toThrow(`object_store.${expected}`);
});

it.each([
  { server_side_encryption: 'AES256' },
  { server_side_encryption: 'aws:kms' },
  { server_side_encryption: 'aws:kms', kms_key_id: 'k' },
  { access_key_id: 'a', secret_access_key_file: 'f' },
  { endpoint: 'http://127.0.0.1:7070', use_path_style: true, region: 'r', prefix: 'a/b/' },
  { flush_interval: '60s', segment_bytes: '64KiB', cache_dir: '/var/cache/nightshift' },
])('accepts a bucket with %j', (change) => {
  expect(load({ ...BUCKET, ...change })).toMatchObject({ type: 's3', bucket: 'b' });
});

it('prints the settings of a bucket so that they can be read back', () => {
  const settings = { ...BUCKET, flush_interval: '250ms', request_timeout: '45s', prefix: 'p' };
  const config = loadConfig({ env: {}, needs: [], overrides: { object_store: settings } });
  const text = printConfig(config);
  expect(text).toContain('flush_interval: 250ms');
  expect(text).toContain('request_timeout: 45s');
});
