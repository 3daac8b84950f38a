import { NightshiftError } from '../../../core/errors';
import { isStoreAway } from '../../../storage/objects/store-outage';

const failed = (cause: unknown) => new NightshiftError('object_store_failed', 'failed', { cause });
const answer = (httpStatusCode: number, name = 'Error') => ({
  name,
  $metadata: { httpStatusCode },
});

it.each([
  ['no connection', { name: 'Error', code: 'ECONNREFUSED', $metadata: { attempts: 4 } }],
  ['no such host', { name: 'Error', code: 'ENOTFOUND' }],
  ['no answer in time', { name: 'TimeoutError' }],
  ['a failed store', answer(500, 'InternalError')],
  ['an overloaded store', answer(503, 'SlowDown')],
  ['too many requests', answer(429)],
  ['a full disk', { code: 'ENOSPC' }],
  ['a share that does not answer', { code: 'ESTALE' }],
  ['an error without a cause', undefined],
])('counts %s as an outage', (_, cause) => {
  expect(isStoreAway(failed(cause))).toBe(true);
});

it.each([
  ['a missing bucket', answer(404, 'NoSuchBucket')],
  ['a missing right', answer(403, 'AccessDenied')],
  ['expired credentials', answer(400, 'ExpiredToken')],
  ['another region', answer(301, 'PermanentRedirect')],
  ['a service that lacks a feature', answer(501, 'NotImplemented')],
  ['no credentials', { name: 'CredentialsProviderError' }],
  ['a certificate that is not trusted', { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }],
  ['a folder that may not be written', { code: 'EACCES' }],
  ['a file in the place of the folder', { code: 'ENOTDIR' }],
])('does not count %s as an outage', (_, cause) => {
  expect(isStoreAway(failed(cause))).toBe(false);
});

it('counts only errors of the store', () => {
  expect(isStoreAway(new NightshiftError('config_invalid', 'wrong'))).toBe(false);
  expect(isStoreAway(new TypeError('a defect'))).toBe(false);
});
