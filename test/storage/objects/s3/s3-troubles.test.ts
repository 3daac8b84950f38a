import { randomBytes } from 'node:crypto';
import type { ObjectStore } from '../../../../storage/object-store';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import {
  scriptedOptions,
  startScriptedS3,
  type S3Call,
  type ScriptedS3,
} from '../../../support/scripted-s3';

/** Troubles of a whole installation that begin while the store is in use. */

const MIB = 1024 ** 2;
const HOUR_MS = 3_600_000;
const BODY = randomBytes(20 * MIB);
let s3: ScriptedS3;
let store: ObjectStore;

beforeEach(async () => {
  s3 = await startScriptedS3();
  store = await openS3Store(scriptedOptions(s3));
});
afterEach(async () => {
  await store.close();
  await s3.close();
});

const isPart = ({ query }: S3Call): boolean => query.has('partNumber');
const isComplete = ({ method, query }: S3Call): boolean =>
  method === 'POST' && query.has('uploadId');

async function* pieces(): AsyncGenerator<Buffer> {
  for (let at = 0; at < BODY.length; at += MIB) yield BODY.subarray(at, at + MIB);
}

it('fails a long write whose credentials expire in the middle, and makes it with new ones', async () => {
  let parts = 0;
  s3.script = (call) => {
    if (isPart(call)) parts++;
    return parts < 2 ? undefined : { kind: 'answer', status: 400, code: 'ExpiredToken' };
  };
  await expect(store.putIfAbsent('long', pieces())).rejects.toMatchObject({
    code: 'object_store_failed',
    message: expect.stringContaining('The credentials have expired. Renew them.'),
  });
  expect(s3.objects.has('long')).toBe(false);
  // The upload cannot be removed without credentials either; the sweep does it later.
  expect(s3.uploads.size).toBe(1);
  s3.script = () => undefined;
  expect(await store.putIfAbsent('long', pieces())).toBe('created');
  expect(s3.objects.get('long')?.bytes.equals(BODY)).toBe(true);
});

it('writes a long object through a store that asks for fewer requests at every step', async () => {
  const seen = new Set<string>();
  s3.script = ({ method, query }) => {
    const step = `${method} ${query.get('partNumber') ?? ''} ${query.has('uploads')}`;
    if (seen.has(step)) return undefined;
    seen.add(step);
    return { kind: 'answer', status: 503, code: 'SlowDown' };
  };
  expect(await store.putIfAbsent('long', pieces())).toBe('created');
  expect(s3.objects.get('long')?.bytes.equals(BODY)).toBe(true);
  expect(s3.calls.filter(isPart)).toHaveLength(2 * 4);
});

it('does not take an error in an answer with status 200 for a completed upload', async () => {
  let completions = 0;
  s3.script = (call) => {
    if (!isComplete(call) || ++completions > 1) return undefined;
    return { kind: 'answer', status: 200, code: 'InternalError' };
  };
  expect(await store.putIfAbsent('long', pieces())).toBe('created');
  expect(completions).toBe(2);
  expect(s3.objects.get('long')?.bytes.equals(BODY)).toBe(true);
});

it('goes by the clock of the store if that of the host is an hour late', async () => {
  s3.script = ({ headers }) => {
    const storeMs = Date.now() + HOUR_MS;
    if (Math.abs(signedAtMs(headers['x-amz-date']) - storeMs) < HOUR_MS / 4) return undefined;
    const date = new Date(storeMs).toUTCString();
    return { kind: 'answer', status: 403, code: 'RequestTimeTooSkewed', headers: { date } };
  };
  expect(await store.putIfAbsent('a', Buffer.from('x'))).toBe('created');
});

/** From `20261122T150000Z`. */
function signedAtMs(stamp: unknown): number {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(stamp)) ?? [];
  const [, year, month, day, hour, minute, second] = parts.map(Number);
  return Date.UTC(year ?? 0, (month ?? 0) - 1, day, hour, minute, second);
}
