import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ObjectStore } from '../../../../storage/object-store';
import { ObjectBytes } from '../../../../storage/objects/s3/object-bytes';
import { openBucket, type S3StoreOptions } from '../../../../storage/objects/s3/s3-bucket';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { S3Stream } from '../../../../storage/objects/s3/s3-stream';
import {
  scriptedOptions,
  startScriptedS3,
  type S3Call,
  type S3Fault,
  type ScriptedS3,
} from '../../../support/scripted-s3';
import { until } from '../../../support/until';

/** What a healthy server cannot be made to do: connections that break or stall in the middle of a body. */

const BODY = randomBytes(3_000_000);
let s3: ScriptedS3;
let options: S3StoreOptions;
let store: ObjectStore;

beforeEach(async () => {
  s3 = await startScriptedS3();
  s3.objects.set('object', { bytes: BODY, headers: {} });
  options = { ...scriptedOptions(s3), requestTimeoutMs: 200 };
  store = await openS3Store(options);
});
afterEach(async () => {
  await store.close();
  await s3.close();
});

const isGet = ({ method, key }: S3Call): boolean => method === 'GET' && key !== '';
const gets = (): S3Call[] => s3.calls.filter(isGet);

/** Every GET that is answered with more than `bytes` fails after so many. */
function breakAfter(kind: 'cut' | 'stall', bytes: number): void {
  s3.script = (call) => (isGet(call) ? { kind, bytes } : undefined);
}

function failOnce(fault: S3Fault): void {
  let isFirst = true;
  s3.script = (call) => {
    if (!isFirst || !isGet(call)) return undefined;
    isFirst = false;
    return fault;
  };
}

async function gather(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  // Chunks of a scan are valid until the next one is asked for.
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

describe('a body whose connection breaks', () => {
  it.each(['cut', 'stall'] as const)('is continued where it stopped (%s)', async (kind) => {
    breakAfter(kind, 800_000);
    // On a busy machine, an answer may come after 200 ms, and would be asked for again.
    await store.close();
    store = await openS3Store({ ...options, requestTimeoutMs: 1_000 });
    expect((await gather(store.stream('object'))).equals(BODY)).toBe(true);
    expect(gets().map(({ headers }) => headers.range)).toEqual([
      undefined,
      'bytes=800000-2999999',
      'bytes=1600000-2999999',
      'bytes=2400000-2999999',
    ]);
    expect(gets().at(-1)?.headers['if-match']).toBe(gets().at(1)?.headers['if-match']);
  });

  it('gives the exact bytes of a range, and of a read into a buffer', async () => {
    breakAfter('cut', 500_000);
    const range = { from: 123_456, to: 2_345_678 };
    expect((await store.read('object', range)).equals(BODY.subarray(range.from, range.to))).toBe(
      true,
    );
    const reader = await store.open('object');
    const read = await reader.read(1_000_000, 1_500_000, Buffer.alloc(1_500_000));
    expect(read.equals(BODY.subarray(1_000_000, 2_500_000))).toBe(true);
  });

  it('fails if another object is written under its key meanwhile', async () => {
    s3.script = (call) => {
      if (!isGet(call) || gets().length > 1) return undefined;
      queueMicrotask(() =>
        s3.objects.set('object', { bytes: randomBytes(3_000_000), headers: {} }),
      );
      return { kind: 'cut', bytes: 800_000 };
    };
    await expect(gather(store.stream('object'))).rejects.toMatchObject({
      code: 'object_store_failed',
      message: expect.stringContaining('another object was written'),
    });
  });

  it('fails as object_missing if the object is deleted meanwhile', async () => {
    s3.script = (call) => {
      if (!isGet(call) || gets().length > 1) return undefined;
      queueMicrotask(() => s3.objects.delete('object'));
      return { kind: 'cut', bytes: 800_000 };
    };
    await expect(gather(store.stream('object'))).rejects.toMatchObject({ code: 'object_missing' });
  });

  it('fails after several connections without a byte', async () => {
    breakAfter('cut', 0);
    await expect(store.read('object')).rejects.toMatchObject({ code: 'object_store_failed' });
    expect(gets()).toHaveLength(5);
  });
});

describe('a connection to the store', () => {
  it('is used again by reads, streams and writes that follow each other', async () => {
    const before = s3.connections();
    // On a busy machine, an answer may come after 200 ms, and would be asked for again with another connection.
    const patient = await openS3Store({ ...options, requestTimeoutMs: 60_000 });
    const reader = await patient.open('object');
    for (let i = 0; i < 5; i++) {
      await reader.read(i * 1_000, 500_000);
      await patient.read('object', { from: i, to: 700_000 });
      await gather(patient.stream('object'));
      await patient.putIfAbsent(`written/${i}`, Buffer.from('x'));
    }
    await patient.close();
    // One for reads and one for everything else.
    expect(s3.connections() - before).toBe(2);
  });

  it('is given back when its stream is destroyed early', async () => {
    breakAfter('stall', 100_000);
    const stream = store.stream('object');
    await once(stream, 'readable');
    expect(s3.busyConnections()).toBe(1);
    stream.destroy();
    await once(stream, 'close');
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
  });

  it('is given back when a stream is destroyed before the store has answered', async () => {
    // Not by the time limit of the request.
    const patient = await openS3Store({ ...options, requestTimeoutMs: 60_000 });
    s3.script = () => ({ kind: 'hang' });
    const stream = patient.stream('object');
    stream.on('error', () => undefined).resume();
    await until(() => s3.busyConnections() === 1, 5_000, 'the request');
    stream.destroy();
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
    await patient.close();
  });

  it('is given back while a consumer pauses, and taken again when it goes on', async () => {
    const bucket = await openBucket(options);
    const stream = new S3Stream(new ObjectBytes(bucket, { key: 'object' }), () => undefined, 20);
    const chunks: Buffer[] = [];
    failOnce({ kind: 'stall', bytes: 1_000_000 });
    stream.on('data', (chunk: Buffer) => {
      if (chunks.push(chunk) === 1) stream.pause();
    });
    await until(() => chunks.length > 0, 5_000, 'a first chunk');
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
    stream.resume();
    await once(stream, 'end');
    expect(Buffer.concat(chunks).equals(BODY)).toBe(true);
    expect(gets()).toHaveLength(2);
    bucket.client.destroy();
  });
});

it('never takes other bytes for a range from a service that ignores ranges', async () => {
  failOnce({ kind: 'ignore range' });
  await expect(store.read('object', { from: 10, to: 20 })).rejects.toMatchObject({
    code: 'object_store_failed',
    message: expect.stringContaining('ignored the range'),
  });
});

describe('a request that is read by the SDK', () => {
  const isList = ({ query }: S3Call): boolean => query.has('list-type');

  it('fails if its body stalls', async () => {
    s3.script = (call) => (isList(call) ? { kind: 'stall', bytes: 10 } : undefined);
    await expect(store.list('a/')[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'object_store_failed',
    });
    await until(() => s3.busyConnections() === 0, 5_000, 'the connection to close');
  });

  it('carries a text of any characters in its query', async () => {
    const seen: (string | null)[] = [];
    s3.script = ({ query }) => {
      if (query.has('list-type')) seen.push(query.get('prefix'));
      return undefined;
    };
    const prefixed = await openS3Store({ ...options, prefix: "a b+c/ü'()*!~&=%" });
    for await (const object of prefixed.list('x/')) expect(object).toBeUndefined();
    expect(seen).toEqual(["a b+c/ü'()*!~&=%/store-id", "a b+c/ü'()*!~&=%/x/"]);
    await prefixed.close();
  });
});

it('ends requests that wait for the store when it is closed', async () => {
  const other = await openS3Store({ ...options, requestTimeoutMs: 60_000 });
  s3.script = () => ({ kind: 'hang' });
  const read = other.read('object');
  await until(() => s3.busyConnections() === 1, 5_000, 'the request');
  await other.close();
  await expect(read).rejects.toMatchObject({ code: 'object_store_failed' });
});
