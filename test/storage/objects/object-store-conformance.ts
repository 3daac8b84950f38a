import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import type { ObjectStore } from '../../../storage/object-store';
import { readLater } from '../../support/read-later';
import { describeInspectedJoins, describeJoins } from './join-conformance';
import { Area } from './object-area';

/**
 * The tests that every implementation of the object store must pass. Call it inside a `describe`. `open`
 * returns a store that may hold other objects; `close` is called once.
 */
export function describeObjectStore(open: () => Promise<ObjectStore>): void {
  const at = new Area();
  beforeAll(async () => {
    at.store = await open();
  });
  beforeEach(() => {
    at.area = `conformance/${randomBytes(8).toString('hex')}`;
  });
  afterAll(() => at.store.close());
  describePuts(at);
  describeRaces(at);
  describeJoins(at);
  describeInspectedJoins(at);
  describeReads(at);
  describeScans(at);
  describeStreams(at);
  describeReadsOfOpenObjects(at);
  describeNames(at);
  describeKeyRules(at);
}

/** Something to wait for. */
class Gate {
  open!: () => void;
  readonly passed = new Promise<void>((resolve) => (this.open = resolve));
}

function describePuts(at: Area): void {
  it('takes a body in pieces and an empty body', async () => {
    async function* pieces() {
      for (let i = 0; i < 5; i++) yield Buffer.from(`${i},`);
    }
    await at.put('pieces', pieces());
    await at.put('empty', '');
    expect((await at.store.read(`${at.area}/pieces`)).toString()).toBe('0,1,2,3,4,');
    expect(await at.store.head(`${at.area}/empty`)).toEqual({ size: 0 });
    expect(await gather(at.store.stream(`${at.area}/empty`))).toHaveLength(0);
  });

  it('never changes an object that exists', async () => {
    await at.put('once', 'first');
    expect(await at.put('once', 'second')).toBe('exists');
    expect((await at.store.read(`${at.area}/once`)).toString()).toBe('first');
  });

  it('leaves nothing behind when the body fails in the middle', async () => {
    async function* broken() {
      yield Buffer.alloc(300_000);
      throw new Error('source lost');
    }
    await expect(at.put('broken', broken())).rejects.toThrow(/^source lost$/);
    expect(await at.store.head(`${at.area}/broken`)).toBeNull();
    expect(await at.put('broken', 'whole')).toBe('created');
  });

  it('takes a body whose pieces are the same buffer', async () => {
    const piece = Buffer.alloc(100_000);
    async function* pieces() {
      for (let i = 0; i < 5; i++) yield piece.fill(i);
    }
    await at.put('same', pieces());
    const bytes = await at.store.read(`${at.area}/same`);
    expect(bytes).toHaveLength(500_000);
    for (let i = 0; i < 5; i++)
      expect(
        bytes
          .subarray(i * 100_000)
          .subarray(0, 100_000)
          .equals(piece.fill(i)),
      ).toBe(true);
  });
}

function describeRaces(at: Area): void {
  it('lets exactly one of many writers at once create an object', async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) => at.put('raced', Buffer.alloc(100_000, i))),
    );
    expect(results.filter((result) => result === 'created')).toHaveLength(1);
    const winner = results.indexOf('created');
    expect(
      Buffer.compare(await at.store.read(`${at.area}/raced`), Buffer.alloc(100_000, winner)),
    ).toBe(0);
  });

  it('lets exactly one of many writers of long objects create one', async () => {
    async function* body(i: number) {
      for (let piece = 0; piece < 9; piece++) yield Buffer.alloc(1_000_000, i);
    }
    const results = await Promise.all([0, 1, 2, 3].map((i) => at.put('raced', body(i))));
    expect(results.filter((result) => result === 'created')).toHaveLength(1);
    const winner = Buffer.alloc(9_000_000, results.indexOf('created'));
    expect((await at.store.read(`${at.area}/raced`)).equals(winner)).toBe(true);
  });

  it('shows nothing of an object until it is whole', async () => {
    const gate = new Gate();
    async function* slow() {
      yield Buffer.alloc(9_000_000, 1);
      await gate.passed;
      yield Buffer.from('end');
    }
    const put = at.put('slow', slow());
    await at.put('other', 'x');
    const key = `${at.area}/slow`;
    expect(await at.store.head(key)).toBeNull();
    await expect(at.store.read(key)).rejects.toMatchObject({ code: 'object_missing' });
    expect(await at.listed('')).toEqual(['other:1']);
    gate.open();
    expect(await put).toBe('created');
    expect(await at.listed('')).toEqual(['other:1', 'slow:9000003']);
  });
}

function describeReads(at: Area): void {
  it('returns what was put, whole and in ranges', async () => {
    expect(await at.put('a', 'hello world')).toBe('created');
    const key = `${at.area}/a`;
    expect(await at.store.head(key)).toEqual({ size: 11 });
    expect((await at.store.read(key)).toString()).toBe('hello world');
    expect((await at.store.read(key, { from: 6, to: 8 })).toString()).toBe('wo');
    expect((await at.store.read(key, { from: 6, to: 600 })).toString()).toBe('world');
    expect((await at.store.read(key, { from: 11, to: 12 })).length).toBe(0);
    expect((await at.store.read(key, { from: 4, to: 4 })).length).toBe(0);
  });

  it('streams whole objects and ranges', async () => {
    const body = randomBytes(1_500_000);
    await at.put('big', body);
    const key = `${at.area}/big`;
    expect(Buffer.compare(await gather(at.store.stream(key)), body)).toBe(0);
    const middle = await gather(at.store.stream(key, { from: 1_000, to: 1_200_000 }));
    expect(Buffer.compare(middle, body.subarray(1_000, 1_200_000))).toBe(0);
    expect(await gather(at.store.stream(key, { from: 7, to: 7 }))).toHaveLength(0);
  });

  it('reports a missing object as object_missing or null', async () => {
    const key = `${at.area}/nothing`;
    const missing = { code: 'object_missing' };
    expect(await at.store.head(key)).toBeNull();
    await expect(at.store.read(key)).rejects.toMatchObject(missing);
    await expect(at.store.open(key)).rejects.toMatchObject(missing);
    await expect(gather(at.store.stream(key))).rejects.toMatchObject(missing);
    await expect(scanned(at.store.scan(key))).rejects.toMatchObject(missing);
    const range = { from: 3, to: 3 };
    await expect(at.store.read(key, range)).rejects.toMatchObject(missing);
    await expect(gather(at.store.stream(key, range))).rejects.toMatchObject(missing);
    await at.store.delete(key);
  });

  it('reads by position from an open object', async () => {
    const body = randomBytes(400_000);
    await at.put('open', body);
    const reader = await at.store.open(`${at.area}/open`);
    expect(reader.size).toBe(body.length);
    const [small, large] = await Promise.all([reader.read(10, 100), reader.read(50, 300_000)]);
    expect(Buffer.compare(small, body.subarray(10, 110))).toBe(0);
    expect(Buffer.compare(large, body.subarray(50, 300_050))).toBe(0);
    const into = Buffer.alloc(100);
    expect(await readLater(reader, 10, 100, into)).toEqual(small);
    expect(into).toEqual(small);
    for (const read of [readLater.bind(null, reader), reader.read]) {
      expect(await read(399_999, 100)).toHaveLength(1);
      expect(await read(500_000, 100)).toHaveLength(0);
    }
    await reader.close();
    await reader.close();
  });
}

function describeScans(at: Area): void {
  it('scans whole objects and ranges', async () => {
    const body = randomBytes(1_500_000);
    await at.put('scanned', body);
    const key = `${at.area}/scanned`;
    expect((await scanned(at.store.scan(key))).equals(body)).toBe(true);
    const range = { from: 1_000, to: 1_200_000 };
    expect(
      (await scanned(at.store.scan(key, { range }))).equals(body.subarray(1_000, 1_200_000)),
    ).toBe(true);
    expect(await scanned(at.store.scan(key, { range: { from: 7, to: 7 } }))).toHaveLength(0);
  });

  it('ends a scan that is aborted, before its first chunk and after it', async () => {
    await at.put('given-up', randomBytes(3_000_000));
    const key = `${at.area}/given-up`;
    const signal = AbortSignal.abort();
    await expect(scanned(at.store.scan(key, { signal }))).rejects.toThrow();
    const aborter = new AbortController();
    const scan = scanned(at.store.scan(key, { signal: aborter.signal }), () => aborter.abort());
    await expect(scan).rejects.toThrow();
    expect(await at.store.read(key)).toHaveLength(3_000_000);
  });
}

function describeStreams(at: Area): void {
  it('returns the exact bytes of any range, read or streamed', async () => {
    const body = randomBytes(5_000);
    await at.put('ranges', body);
    const key = `${at.area}/ranges`;
    const offset = fc.integer({ min: 0, max: 5_100 });
    await fc.assert(
      fc.asyncProperty(offset, offset, async (from, to) => {
        const expected = body.subarray(from, Math.max(from, to));
        expect((await at.store.read(key, { from, to })).equals(expected)).toBe(true);
        expect((await gather(at.store.stream(key, { from, to }))).equals(expected)).toBe(true);
      }),
      {
        numRuns: 30,
        examples: [
          [0, 0],
          [4_999, 5_000],
          [5_000, 5_000],
          [5_000, 5_001],
        ],
      },
    );
  });

  it('serves others after many streams were destroyed early', async () => {
    await at.put('abandoned', randomBytes(2_000_000));
    const key = `${at.area}/abandoned`;
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        for await (const chunk of at.store.stream(key)) {
          expect((chunk as Buffer).length).toBeGreaterThan(0);
          break;
        }
      }),
    );
    expect(await at.store.read(key)).toHaveLength(2_000_000);
  });
}

function describeReadsOfOpenObjects(at: Area): void {
  it('reads into a given buffer, and only the bytes asked for', async () => {
    const body = randomBytes(200_000);
    await at.put('target', body);
    const reader = await at.store.open(`${at.area}/target`);
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
}

function describeNames(at: Area): void {
  it('does not take a folder of keys for an object', async () => {
    await at.put('deep/er/object', 'x');
    const part = `${at.area}/deep/er`;
    expect(await at.store.head(part)).toBeNull();
    await expect(at.store.read(part)).rejects.toMatchObject({ code: 'object_missing' });
    await at.store.delete(part);
    expect(await at.listed('')).toEqual(['deep/er/object:1']);
  });

  it('lists keys of a prefix in key order', async () => {
    for (const name of ['a/b', 'a-b', 'a.b', 'a0', 'a/a/z', 'b/x', 'a/a-'])
      await at.put(name, 'xy');
    const inOrder = ['a-b', 'a.b', 'a/a-', 'a/a/z', 'a/b', 'a0'];
    expect(await at.listed('a')).toEqual(inOrder.map((name) => `${name}:2`));
    expect(await at.listed('a/')).toEqual(['a/a-:2', 'a/a/z:2', 'a/b:2']);
    expect(await at.listed('a/a')).toEqual(['a/a-:2', 'a/a/z:2']);
    expect(await at.listed('none/')).toEqual([]);
  });

  it('lists keys of a prefix behind a key, which need not exist', async () => {
    for (const name of ['a/b', 'a-b', 'a0', 'a/a/z', 'a/a/y', 'a/c/x', 'b/x'])
      await at.put(name, 'xy');
    const behind = (prefix: string, after: string) => at.listed(prefix, after);
    expect(await behind('a', 'a/a/y')).toEqual(['a/a/z:2', 'a/b:2', 'a/c/x:2', 'a0:2']);
    expect(await behind('a', 'a/a/yy')).toEqual(['a/a/z:2', 'a/b:2', 'a/c/x:2', 'a0:2']);
    expect(await behind('a/', 'a/a')).toEqual(['a/a/y:2', 'a/a/z:2', 'a/b:2', 'a/c/x:2']);
    expect(await behind('a/', 'a/b')).toEqual(['a/c/x:2']);
    expect(await behind('a/', 'a/c/x')).toEqual([]);
  });

  it('lists when objects were written', async () => {
    // Timestamps of files are coarser than the clock of the process.
    const before = Date.now() - 1_000;
    await at.put('when', 'xy');
    for await (const { writtenAtMs } of at.store.list(`${at.area}/`)) {
      expect(writtenAtMs).toBeGreaterThan(before);
      expect(writtenAtMs).toBeLessThan(Date.now() + 1_000);
    }
    expect(await at.listed('')).toEqual(['when:2']);
  });

  it('deletes, and can create again under the same key', async () => {
    await at.put('x/y', '1');
    await at.store.delete(`${at.area}/x/y`);
    await at.store.delete(`${at.area}/x/y`);
    expect(await at.listed('')).toEqual([]);
    expect(await at.put('x/y', '22')).toBe('created');
    expect(await at.listed('')).toEqual(['x/y:2']);
  });

  it('survives puts and deletes in one folder at the same time', async () => {
    await Promise.all(
      Array.from({ length: 40 }, async (_, i) => {
        await at.put(`busy/${i}`, 'x');
        await at.store.delete(`${at.area}/busy/${i}`);
      }),
    );
    expect(await at.listed('busy')).toEqual([]);
  });
}

function describeKeyRules(at: Area): void {
  it('refuses names that are not keys', async () => {
    for (const key of ['', '/a', 'a/', 'a//b', '../a', 'a/../b', 'a/./b', 'a b', 'a\\b', 'ä']) {
      await expect(at.store.putIfAbsent(key, Buffer.alloc(0))).rejects.toMatchObject({
        code: 'internal',
      });
    }
  });

  it('passes the readiness check', async () => {
    await at.store.check();
  });

  it('keeps one random id, even if many ask for it at once', async () => {
    const ids = await Promise.all([1, 2, 3, 4].map(() => at.store.storeId()));
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set(ids).size).toBe(1);
  });

  it('removes nothing that is younger than a day', async () => {
    await at.put('young', 'x');
    expect(await at.store.removeUnfinished()).toBe(0);
    expect(await at.listed('')).toEqual(['young:1']);
  });
}

/** Copies each chunk before it asks for the next one. */
async function scanned(chunks: AsyncIterable<Buffer>, onChunk = (): void => undefined) {
  const copies: Buffer[] = [];
  for await (const chunk of chunks) {
    copies.push(Buffer.from(chunk));
    onChunk();
  }
  return Buffer.concat(copies);
}

async function gather(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
