import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { startSmallS3Server, type SmallS3Server } from './small-s3-server';

let server: SmallS3Server;

beforeEach(async () => {
  server = await startSmallS3Server();
});
afterEach(() => server.close());

it('is given to processes of a store with conditional writes, always the same', async () => {
  const store = await openS3Store(server.options);
  const id = await store.storeId();
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(await store.storeId()).toBe(id);
  await store.close();
});

it('is refused by a store that ignores If-None-Match, which keeps its bytes', async () => {
  server.honoursConditions = false;
  const store = await openS3Store(server.options);
  await expect(store.storeId()).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('bucket bucket at http://127.0.0.1'),
  });
  server.honoursConditions = true;
  expect(await store.storeId()).toMatch(/^[0-9a-f]{32}$/);
  await store.close();
});

it('reports each request that the client sends again', async () => {
  const retried: string[] = [];
  const onRetry = (operation: string): void => void retried.push(operation);
  const store = await openS3Store({ ...server.options, onRetry });
  server.busy = 2;
  expect(await store.putIfAbsent('a', Buffer.from('1'))).toBe('created');
  expect(retried).toEqual(['store', 'store']);
  server.busy = 1;
  expect((await store.read('a')).toString()).toBe('1');
  expect(retried).toEqual(['store', 'store', 'retrieve']);
  server.busy = 10;
  await expect(store.putIfAbsent('b', Buffer.from('1'))).rejects.toMatchObject({
    code: 'object_store_failed',
  });
  expect(retried).toHaveLength(6);
  await store.close();
});
