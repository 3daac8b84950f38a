import { randomBytes } from 'node:crypto';
import { NightshiftError } from '../../../../core/errors';
import type { ObjectStore } from '../../../../storage/object-store';
import type { S3StoreOptions } from '../../../../storage/objects/s3/s3-bucket';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import {
  scriptedOptions,
  startScriptedS3,
  type S3Call,
  type S3Fault,
  type ScriptedS3,
} from '../../../support/scripted-s3';
import { until } from '../../../support/until';

/** What a healthy server cannot be made to do: lost answers, conflicts, refusals. */

const MIB = 1024 ** 2;
let s3: ScriptedS3;
let store: ObjectStore;

beforeEach(async () => {
  s3 = await startScriptedS3();
  store = await open();
});
afterEach(async () => {
  await store.close();
  await s3.close();
});

function open(options: Partial<S3StoreOptions> = {}): Promise<ObjectStore> {
  return openS3Store({ ...scriptedOptions(s3), ...options });
}

/** Fails the first `times` requests that fit, after what `before` does. */
function failFirst(
  times: number,
  fits: (call: S3Call) => boolean,
  fault: S3Fault,
  before: () => void = () => undefined,
): void {
  let left = times;
  s3.script = (call) => {
    if (left === 0 || !fits(call)) return undefined;
    left--;
    before();
    return fault;
  };
}

const isPut = ({ method, key }: S3Call): boolean => method === 'PUT' && key !== '';
const isComplete = ({ method, query }: S3Call): boolean =>
  method === 'POST' && query.has('uploadId');
const isPart = ({ query }: S3Call): boolean => query.has('partNumber');
const callsOf = (fits: (call: S3Call) => boolean): number => s3.calls.filter(fits).length;

async function* pieces(bytes: Buffer, pieceBytes = 300_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

const stored = (key: string): Buffer | undefined => s3.objects.get(key)?.bytes;

describe('a write whose answer is lost', () => {
  it('is created if the object that exists is its own', async () => {
    failFirst(1, isPut, { kind: 'lost answer' });
    expect(await store.putIfAbsent('a', Buffer.from('mine'))).toBe('created');
    expect(callsOf(isPut)).toBe(2);
    expect(stored('a')?.toString()).toBe('mine');
  });

  it('exists if another writer created the object before the second try', async () => {
    failFirst(1, isPut, { kind: 'reset' }, () =>
      s3.objects.set('a', { bytes: Buffer.from('other'), headers: { 'x-amz-meta-writer': 'x' } }),
    );
    expect(await store.putIfAbsent('a', Buffer.from('mine'))).toBe('exists');
    expect(stored('a')?.toString()).toBe('other');
  });

  it('exists if the object was written by another tool with the same bytes', async () => {
    s3.objects.set('a', { bytes: Buffer.from('mine'), headers: {} });
    expect(await store.putIfAbsent('a', Buffer.from('mine'))).toBe('exists');
  });

  it('is created if its multipart upload was completed by the first try', async () => {
    const body = randomBytes(9 * MIB);
    failFirst(1, isComplete, { kind: 'lost answer' });
    expect(await store.putIfAbsent('long', pieces(body))).toBe('created');
    expect(callsOf(isComplete)).toBe(2);
    expect(stored('long')?.equals(body)).toBe(true);
  });
});

describe('a write that conflicts with another', () => {
  it('is made again until the other one is finished', async () => {
    failFirst(2, isPut, { kind: 'answer', status: 409, code: 'ConditionalRequestConflict' });
    expect(await store.putIfAbsent('a', Buffer.from('x'))).toBe('created');
    expect(callsOf(isPut)).toBe(3);
  });

  it('leaves no parts behind if its long object loses', async () => {
    s3.objects.set('long', { bytes: Buffer.from('other'), headers: {} });
    expect(await store.putIfAbsent('long', randomBytes(9 * MIB))).toBe('exists');
    expect(stored('long')?.toString()).toBe('other');
    expect(s3.uploads.size).toBe(0);
  });

  it('is made again if the object that was in its way has been deleted', async () => {
    failFirst(1, isPut, { kind: 'answer', status: 412, code: 'PreconditionFailed' });
    expect(await store.putIfAbsent('a', Buffer.from('x'))).toBe('created');
  });
});

describe('a long object', () => {
  it('is sent in parts of 5 MiB from pieces that their owner overwrites', async () => {
    const piece = Buffer.alloc(1_000_000);
    async function* body() {
      for (let i = 0; i < 26; i++) yield piece.fill(i);
    }
    expect(await store.putIfAbsent('long', body())).toBe('created');
    const sizes = s3.calls.filter(isPart).map(({ body: part }) => part.length);
    const whole = Array<number>(4).fill(5 * MIB);
    expect(sizes.sort((a, b) => b - a)).toEqual([...whole, 26e6 - 20 * MIB]);
    for (let i = 0; i < 26; i++) expect(stored('long')?.at(i * 1_000_000 + 999_999)).toBe(i);
  });

  it('of exactly one part is sent in one request', async () => {
    expect(await store.putIfAbsent('exact', pieces(Buffer.alloc(5 * MIB)))).toBe('created');
    expect(callsOf(isPut)).toBe(1);
    expect(callsOf(isPart)).toBe(0);
  });

  it('is aborted if its body fails', async () => {
    async function* broken() {
      yield Buffer.alloc(9 * MIB);
      throw new Error('source lost');
    }
    await expect(store.putIfAbsent('long', broken())).rejects.toThrow(/^source lost$/);
    expect(s3.uploads.size).toBe(0);
    expect(s3.objects.size).toBe(0);
  });

  it('is aborted if a part is refused, and its body is not read to the end', async () => {
    failFirst(Infinity, isPart, { kind: 'answer', status: 403, code: 'AccessDenied' });
    let given = 0;
    async function* body() {
      for (; given < 100; given++) yield Buffer.alloc(MIB);
    }
    const failed = {
      code: 'object_store_failed',
      message: expect.stringContaining('lack a right'),
    };
    await expect(store.putIfAbsent('long', body())).rejects.toMatchObject(failed);
    expect(given).toBeLessThan(40);
    expect(s3.uploads.size).toBe(0);
  });

  it('is aborted at once if its body fails while a part waits for its answer', async () => {
    const patient = await open({ requestTimeoutMs: 60_000 });
    s3.script = (call) => (isPart(call) ? { kind: 'hang' } : undefined);
    async function* broken() {
      yield Buffer.alloc(9 * MIB);
      await until(() => callsOf(isPart) > 0, 5_000, 'a part');
      throw new Error('source lost');
    }
    await expect(patient.putIfAbsent('long', broken())).rejects.toThrow(/^source lost$/);
    expect(callsOf(isPart)).toBe(1);
    expect(s3.uploads.size).toBe(0);
    await patient.close();
  });

  it('fails, and may be written again, if its upload was removed by a rule of the bucket', async () => {
    failFirst(1, isComplete, { kind: 'answer', status: 404, code: 'NoSuchUpload' });
    await expect(store.putIfAbsent('long', randomBytes(9 * MIB))).rejects.toMatchObject({
      code: 'object_store_failed',
      message: expect.stringContaining('unfinished upload was removed'),
    });
    expect(await store.putIfAbsent('long', randomBytes(9 * MIB))).toBe('created');
  });
});

describe('objects that are joined', () => {
  const put = (key: string, bytes: number): Buffer => {
    const body = randomBytes(bytes);
    s3.objects.set(key, { bytes: body, headers: {} });
    return body;
  };
  const isCopy = ({ headers }: S3Call): boolean => 'x-amz-copy-source' in headers;

  it('are copied on the server if all but the last have 5 MiB', async () => {
    const whole = Buffer.concat([put('p/1', 5 * MIB), put('p/2', 6 * MIB), put('p/3', 10)]);
    expect(await store.concatenate('joined', ['p/1', 'p/2', 'p/3'])).toBe('created');
    expect(stored('joined')?.equals(whole)).toBe(true);
    expect(callsOf(isCopy)).toBe(3);
    expect(callsOf(({ method, key }) => method === 'GET' && key !== '')).toBe(0);
  });

  it('are streamed through the process if one in the middle is small', async () => {
    const whole = Buffer.concat([put('p/1', 6 * MIB), put('p/2', 10), put('p/3', 6 * MIB)]);
    expect(await store.concatenate('joined', ['p/1', 'p/2', 'p/3'])).toBe('created');
    expect(stored('joined')?.equals(whole)).toBe(true);
    expect(callsOf(isCopy)).toBe(0);
  });

  it('are read once to be inspected, whether they are copied or streamed', async () => {
    const inspector = { update: () => undefined, finish: () => undefined };
    const isRead = ({ method, key }: S3Call): boolean => method === 'GET' && key !== '';
    put('p/1', 6 * MIB);
    put('p/2', 10);
    await store.concatenate('copied', ['p/1', 'p/2'], inspector);
    expect([callsOf(isCopy), callsOf(isRead)]).toEqual([2, 2]);
    await store.concatenate('streamed', ['p/2', 'p/1'], inspector);
    expect([callsOf(isCopy), callsOf(isRead)]).toEqual([2, 4]);
  });

  it('are not copied if the inspector refuses their bytes', async () => {
    const refusal = new NightshiftError('invalid_request', 'refused');
    put('p/1', 6 * MIB);
    const finish = () => {
      throw refusal;
    };
    const joined = store.concatenate('joined', ['p/1'], { update: () => undefined, finish });
    await expect(joined).rejects.toBe(refusal);
    expect(callsOf(isCopy)).toBe(0);
    expect(s3.uploads.size).toBe(0);
  });

  it('are streamed if the service cannot copy parts', async () => {
    const whole = Buffer.concat([put('p/1', 6 * MIB), put('p/2', 10)]);
    failFirst(Infinity, isCopy, { kind: 'answer', status: 501, code: 'NotImplemented' });
    expect(await store.concatenate('joined', ['p/1', 'p/2'])).toBe('created');
    expect(stored('joined')?.equals(whole)).toBe(true);
    expect(s3.uploads.size).toBe(0);
  });

  it('leave nothing behind if one is missing', async () => {
    put('p/1', 6 * MIB);
    put('p/2', 6 * MIB);
    failFirst(1, isCopy, { kind: 'answer', status: 404, code: 'NoSuchKey' });
    await expect(store.concatenate('joined', ['p/1', 'p/2'])).rejects.toMatchObject({
      code: 'object_missing',
    });
    expect(s3.uploads.size).toBe(0);
  });
});

it('asks for encryption with every object that it creates', async () => {
  const encrypted = await open({ encryption: 'aws:kms', kmsKeyId: 'key-1' });
  await encrypted.putIfAbsent('short', Buffer.from('x'));
  await encrypted.putIfAbsent('long', randomBytes(9 * MIB));
  await encrypted.concatenate('joined', ['long', 'short']);
  await encrypted.close();
  const creating = s3.calls.filter(
    ({ method, query, key }) =>
      key !== '' &&
      (query.has('uploads') || (method === 'PUT' && query.size === 1 && !query.has('partNumber'))),
  );
  expect(creating.map(({ key }) => key)).toEqual(['short', 'long', 'joined']);
  for (const { headers } of creating) {
    expect(headers['x-amz-server-side-encryption']).toBe('aws:kms');
    expect(headers['x-amz-server-side-encryption-aws-kms-key-id']).toBe('key-1');
  }
});

describe('a body', () => {
  it('may take longer than an answer, by its size', async () => {
    const hasty = await open({ requestTimeoutMs: 300 });
    s3.script = (call) => (isPut(call) ? { kind: 'late', ms: 1_000 } : undefined);
    expect(await hasty.putIfAbsent('a', randomBytes(4 * MIB))).toBe('created');
    expect(await hasty.putIfAbsent('b', pieces(randomBytes(9 * MIB)))).toBe('created');
    expect(callsOf(isPut)).toBe(3);
    await hasty.close();
  });

  it('is not part of the signature within the machine, but has a checksum', async () => {
    await store.putIfAbsent('a', Buffer.from('bytes'));
    await store.putIfAbsent('b', pieces(Buffer.alloc(9 * MIB)));
    const bodies = s3.calls.filter((call) => isPut(call));
    expect(bodies).toHaveLength(3);
    for (const { headers } of bodies) {
      expect(headers['x-amz-content-sha256']).toBe('UNSIGNED-PAYLOAD');
      expect(headers['x-amz-checksum-crc32']).toEqual(expect.any(String));
    }
  });

  it('is part of the signature where others might change it on its way', async () => {
    const { port } = new URL(s3.endpoint);
    const other = await open({ endpoint: `http://[::ffff:127.0.0.1]:${port}` });
    await other.putIfAbsent('a', Buffer.from('bytes'));
    const [put] = s3.calls.filter((call) => isPut(call));
    expect(put?.headers['x-amz-content-sha256']).toMatch(/^[0-9a-f]{64}$/);
    await other.close();
  });
});
