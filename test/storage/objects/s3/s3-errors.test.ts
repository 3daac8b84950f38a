import type { ObjectStore } from '../../../../storage/object-store';
import { openBucket, type S3StoreOptions } from '../../../../storage/objects/s3/s3-bucket';
import { s3Error } from '../../../../storage/objects/s3/s3-errors';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { freePort } from '../../../support/free-port';
import { scriptedOptions, startScriptedS3, type ScriptedS3 } from '../../../support/scripted-s3';

let s3: ScriptedS3;
let options: S3StoreOptions;
let store: ObjectStore;

beforeEach(async () => {
  s3 = await startScriptedS3();
  options = { ...scriptedOptions(s3), requestTimeoutMs: 100 };
  store = await openS3Store(options);
});
afterEach(async () => {
  await store.close();
  await s3.close();
});

async function gather(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const OPERATIONS: Record<string, () => Promise<unknown>> = {
  putIfAbsent: () => store.putIfAbsent('a', Buffer.from('x')),
  'putIfAbsent of a long object': () => store.putIfAbsent('a', Buffer.alloc(9_000_000)),
  concatenate: () => store.concatenate('a', ['b']),
  head: () => store.head('a'),
  read: () => store.read('a'),
  stream: () => gather(store.stream('a')),
  open: () => store.open('a'),
  list: () => gather(store.list('a')),
  delete: () => store.delete('a'),
  check: () => store.check(),
  storeId: () => store.storeId(),
  removeUnfinished: () => store.removeUnfinished(),
};

const failed = (text: string) => ({
  code: 'object_store_failed',
  retryable: true,
  message: expect.stringContaining(text),
});

it.each(Object.keys(OPERATIONS))('reports a missing bucket as a failed store: %s', async (name) => {
  s3.script = ({ method }) => ({
    kind: 'answer',
    status: 404,
    ...(method === 'HEAD' ? {} : { code: 'NoSuchBucket' }),
  });
  await expect(OPERATIONS[name]?.()).rejects.toMatchObject(failed('There is no bucket bucket at'));
});

it.each(Object.keys(OPERATIONS))('says which rights are missing: %s', async (name) => {
  s3.script = ({ method }) => ({
    kind: 'answer',
    status: 403,
    ...(method === 'HEAD' ? {} : { code: 'AccessDenied' }),
  });
  await expect(OPERATIONS[name]?.()).rejects.toMatchObject(failed('docs/configuration.md#s3'));
});

it.each(['head', 'read', 'open', 'stream'])(
  'does not take a 404 of something that is no S3 service for a missing object: %s',
  async (name) => {
    s3.script = () => ({ kind: 'answer', status: 404 });
    await expect(OPERATIONS[name]?.()).rejects.toMatchObject({ code: 'object_store_failed' });
  },
);

it('names the region of a bucket that is elsewhere', async () => {
  const headers = { 'x-amz-bucket-region': 'eu-west-3' };
  s3.script = () => ({ kind: 'answer', status: 301, code: 'PermanentRedirect', headers });
  await expect(store.read('a')).rejects.toMatchObject(
    failed('Set object_store.region to eu-west-3'),
  );
  await expect(store.head('a')).rejects.toMatchObject(
    failed('Set object_store.region to eu-west-3'),
  );
});

it('tries again when the store asks for fewer requests', async () => {
  s3.script = () =>
    s3.calls.length <= 2 ? { kind: 'answer', status: 503, code: 'SlowDown' } : undefined;
  expect(await store.putIfAbsent('a', Buffer.from('x'))).toBe('created');
});

it('does not wait forever for a store that hangs', async () => {
  s3.script = () => ({ kind: 'hang' });
  const all = Object.values(OPERATIONS);
  const outcomes = await Promise.allSettled(all.map((operation) => operation()));
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ reason: failed('did not answer within 0.1 s') });
  }
});

it('refuses to open a store that is not there', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  await expect(openS3Store({ ...options, endpoint })).rejects.toMatchObject(failed('ECONNREFUSED'));
});

it.each([
  [404, 'NoSuchBucket', 'There is no bucket bucket'],
  [404, '', 'is no S3 service'],
  [400, 'InvalidBucketName', 'name of a bucket'],
  [400, '', 'refused the request as invalid'],
])('refuses to open a bucket that answers %i %s', async (status, code, text) => {
  s3.script = () => ({ kind: 'answer', status, code });
  await expect(openS3Store(options)).rejects.toMatchObject(failed(text));
});

it.each([
  [{ name: 'InvalidAccessKeyId' }, 'The access key is unknown'],
  [{ name: 'SignatureDoesNotMatch' }, 'does not fit its secret'],
  [{ name: 'ExpiredToken' }, 'have expired'],
  [{ name: 'CredentialsProviderError' }, 'Found no credentials'],
  [{ name: 'RequestTimeTooSkewed' }, 'clock'],
  [{ name: 'SlowDown' }, 'fewer requests'],
  [{ name: 'InvalidObjectState' }, 'archived'],
  [{ name: 'AuthorizationHeaderMalformed', Region: 'eu-west-1' }, 'region to eu-west-1'],
  [{ name: 'Error', code: 'ENOTFOUND' }, 'DNS'],
  [{ name: 'Error', code: 'ECONNREFUSED' }, 'No connection to http://127.0.0.1'],
  [{ name: 'Error', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }, 'NODE_EXTRA_CA_CERTS'],
  [{ name: 'Error', code: 'CERT_HAS_EXPIRED' }, 'certificate'],
])('says what to do about %j', async (fault, text) => {
  const bucket = await openBucket(options);
  const error = s3Error(Object.assign(new Error('raw'), fault), 'read a', bucket);
  expect(error).toMatchObject(failed(text));
  expect(error.message).toMatch(/^read a: .*\(\w+\)$/);
  bucket.client.destroy();
});
