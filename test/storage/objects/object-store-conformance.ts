import { randomBytes } from 'node:crypto';
import type { ObjectStore } from '../../../storage/object-store';

/**
 * What every implementation of the object store must do. Call it inside a `describe`; `open` gives a
 * store that may hold other objects, `close` is called once.
 */
export function describeObjectStore(open: () => Promise<ObjectStore>): void {
  let store: ObjectStore;
  let area: string;

  beforeAll(async () => {
    store = await open();
  });
  beforeEach(() => {
    area = `conformance/${randomBytes(8).toString('hex')}`;
  });
  afterAll(() => store.close());

  const put = (name: string, body: string | Uint8Array | AsyncIterable<Uint8Array>) =>
    store.putIfAbsent(`${area}/${name}`, typeof body === 'string' ? Buffer.from(body) : body);
  const listed = async (prefix: string) => {
    const found: string[] = [];
    for await (const { key, size } of store.list(`${area}/${prefix}`)) {
      found.push(`${key.slice(area.length + 1)}:${size}`);
    }
    return found;
  };

  test('gives back what was put, whole and in ranges', async () => {
    expect(await put('a', 'hello world')).toBe('created');
    const key = `${area}/a`;
    expect(await store.head(key)).toEqual({ size: 11 });
    expect((await store.read(key)).toString()).toBe('hello world');
    expect((await store.read(key, { from: 6, to: 8 })).toString()).toBe('wo');
    expect((await store.read(key, { from: 6, to: 600 })).toString()).toBe('world');
    expect((await store.read(key, { from: 11, to: 12 })).length).toBe(0);
    expect((await store.read(key, { from: 4, to: 4 })).length).toBe(0);
  });

  test('streams whole objects and ranges', async () => {
    const body = randomBytes(1_500_000);
    await put('big', body);
    const key = `${area}/big`;
    expect(Buffer.compare(await gather(store.stream(key)), body)).toBe(0);
    const middle = await gather(store.stream(key, { from: 1_000, to: 1_200_000 }));
    expect(Buffer.compare(middle, body.subarray(1_000, 1_200_000))).toBe(0);
    expect(await gather(store.stream(key, { from: 7, to: 7 }))).toHaveLength(0);
  });

  test('takes a body in pieces and an empty body', async () => {
    async function* pieces() {
      for (let i = 0; i < 5; i++) yield Buffer.from(`${i},`);
    }
    await put('pieces', pieces());
    await put('empty', '');
    expect((await store.read(`${area}/pieces`)).toString()).toBe('0,1,2,3,4,');
    expect(await store.head(`${area}/empty`)).toEqual({ size: 0 });
    expect(await gather(store.stream(`${area}/empty`))).toHaveLength(0);
  });

  test('never changes an object that exists', async () => {
    await put('once', 'first');
    expect(await put('once', 'second')).toBe('exists');
    expect((await store.read(`${area}/once`)).toString()).toBe('first');
  });

  test('lets exactly one of many writers at once create an object', async () => {
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put('raced', Buffer.alloc(100_000, i))),
    );
    expect(results.filter((result) => result === 'created')).toHaveLength(1);
    const winner = results.indexOf('created');
    expect(Buffer.compare(await store.read(`${area}/raced`), Buffer.alloc(100_000, winner))).toBe(
      0,
    );
  });

  test('leaves nothing behind when the body fails in the middle', async () => {
    async function* broken() {
      yield Buffer.alloc(300_000);
      throw new Error('source lost');
    }
    await expect(put('broken', broken())).rejects.toThrow(/^source lost$/);
    expect(await store.head(`${area}/broken`)).toBeNull();
    expect(await put('broken', 'whole')).toBe('created');
  });

  test('says object_missing, or null, for what is not there', async () => {
    const key = `${area}/nothing`;
    const missing = { code: 'object_missing' };
    expect(await store.head(key)).toBeNull();
    await expect(store.read(key)).rejects.toMatchObject(missing);
    await expect(store.open(key)).rejects.toMatchObject(missing);
    await expect(gather(store.stream(key))).rejects.toMatchObject(missing);
    await store.delete(key);
  });

  test('takes no part of a key for an object', async () => {
    await put('deep/er/object', 'x');
    const part = `${area}/deep/er`;
    expect(await store.head(part)).toBeNull();
    await expect(store.read(part)).rejects.toMatchObject({ code: 'object_missing' });
    await store.delete(part);
    expect(await listed('')).toEqual(['deep/er/object:1']);
  });

  test('reads by position from an open object', async () => {
    const body = randomBytes(400_000);
    await put('open', body);
    const reader = await store.open(`${area}/open`);
    expect(reader.size).toBe(body.length);
    const [small, large] = await Promise.all([reader.read(10, 100), reader.read(50, 300_000)]);
    expect(Buffer.compare(small, body.subarray(10, 110))).toBe(0);
    expect(Buffer.compare(large, body.subarray(50, 300_050))).toBe(0);
    expect(await reader.read(399_999, 100)).toHaveLength(1);
    expect(await reader.read(500_000, 100)).toHaveLength(0);
    await reader.close();
    await reader.close();
  });

  test('reads into a buffer that is given, and no further than asked', async () => {
    const body = randomBytes(200_000);
    await put('target', body);
    const reader = await store.open(`${area}/target`);
    for (const [position, length, expected] of [
      [5, 100, 100],
      [5, 150_000, 150_000],
      [199_990, 100, 10],
      [300_000, 100, 0],
    ] as const) {
      const target = Buffer.alloc(160_000, 7);
      const bytes = await reader.read(position, length, target);
      expect(bytes).toHaveLength(expected);
      expect(Buffer.compare(bytes, body.subarray(position, position + expected))).toBe(0);
      if (expected > 0) expect(bytes.buffer).toBe(target.buffer);
      expect(target.subarray(expected).every((byte) => byte === 7)).toBe(true);
    }
    await reader.close();
  });

  test('takes a body whose pieces are one and the same buffer', async () => {
    const piece = Buffer.alloc(100_000);
    async function* pieces() {
      for (let i = 0; i < 5; i++) yield piece.fill(i);
    }
    await put('same', pieces());
    const bytes = await store.read(`${area}/same`);
    expect(bytes).toHaveLength(500_000);
    for (let i = 0; i < 5; i++)
      expect(bytes.subarray(i * 100_000).subarray(0, 100_000)).toEqual(piece.fill(i));
  });

  test('lists keys of a prefix in key order', async () => {
    for (const name of ['a/b', 'a-b', 'a.b', 'a0', 'a/a/z', 'b/x', 'a/a-']) await put(name, 'xy');
    const inOrder = ['a-b', 'a.b', 'a/a-', 'a/a/z', 'a/b', 'a0'];
    expect(await listed('a')).toEqual(inOrder.map((name) => `${name}:2`));
    expect(await listed('a/')).toEqual(['a/a-:2', 'a/a/z:2', 'a/b:2']);
    expect(await listed('a/a')).toEqual(['a/a-:2', 'a/a/z:2']);
    expect(await listed('none/')).toEqual([]);
  });

  test('lists when objects were written', async () => {
    // Clocks of files are coarser than ours.
    const before = Date.now() - 1_000;
    await put('when', 'xy');
    for await (const { writtenAtMs } of store.list(`${area}/`)) {
      expect(writtenAtMs).toBeGreaterThan(before);
      expect(writtenAtMs).toBeLessThan(Date.now() + 1_000);
    }
    expect(await listed('')).toEqual(['when:2']);
  });

  test('deletes, and can create again under the same key', async () => {
    await put('x/y', '1');
    await store.delete(`${area}/x/y`);
    await store.delete(`${area}/x/y`);
    expect(await listed('')).toEqual([]);
    expect(await put('x/y', '22')).toBe('created');
    expect(await listed('')).toEqual(['x/y:2']);
  });

  test('survives puts and deletes in one folder at the same time', async () => {
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        await put(`busy/${i}`, 'x');
        await store.delete(`${area}/busy/${i}`);
      }),
    );
    expect(await listed('busy')).toEqual([]);
  });

  test('refuses names that are not keys', async () => {
    for (const key of ['', '/a', 'a/', 'a//b', '../a', 'a/../b', 'a/./b', 'a b', 'a\\b', 'ä']) {
      await expect(store.putIfAbsent(key, Buffer.alloc(0))).rejects.toMatchObject({
        code: 'internal',
      });
    }
  });

  test('answers the readiness check', async () => {
    await store.check();
  });
}

async function gather(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
