import type { S3StoreOptions } from '../../../../storage/objects/s3/s3-bucket';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { scriptedOptions, startScriptedS3, type ScriptedS3 } from '../../../support/scripted-s3';

let s3: ScriptedS3;
let options: S3StoreOptions;

beforeEach(async () => {
  s3 = await startScriptedS3();
  options = scriptedOptions(s3);
});
afterEach(() => s3.close());

it('is given to processes of a store with conditional writes, always the same', async () => {
  const store = await openS3Store(options);
  const id = await store.storeId();
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(await store.storeId()).toBe(id);
  await store.close();
});

it('is refused by a store that ignores If-None-Match, which keeps its bytes', async () => {
  s3.script = () => ({ kind: 'ignore condition' });
  const store = await openS3Store(options);
  await expect(store.storeId()).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('bucket bucket at http://127.0.0.1'),
  });
  s3.script = () => undefined;
  expect(await store.storeId()).toMatch(/^[0-9a-f]{32}$/);
  await store.close();
});

it('reports each request that the client sends again', async () => {
  const retried: string[] = [];
  const onRetry = (operation: string): void => void retried.push(operation);
  const store = await openS3Store({ ...options, onRetry });
  let busy = 2;
  s3.script = () => (busy-- > 0 ? { kind: 'answer', status: 503 } : undefined);
  expect(await store.putIfAbsent('a', Buffer.from('1'))).toBe('created');
  expect(retried).toEqual(['store', 'store']);
  busy = 1;
  expect((await store.read('a')).toString()).toBe('1');
  expect(retried).toEqual(['store', 'store', 'retrieve']);
  busy = 10;
  await expect(store.putIfAbsent('b', Buffer.from('1'))).rejects.toMatchObject({
    code: 'object_store_failed',
  });
  expect(retried).toHaveLength(6);
  await store.close();
});
