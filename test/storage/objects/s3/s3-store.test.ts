import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ObjectStore } from '../../../../storage/object-store';
import { newObject } from '../../../../storage/objects/s3/conditional-write';
import { MultipartUpload } from '../../../../storage/objects/s3/multipart-upload';
import { removeUnfinishedUploads } from '../../../../storage/objects/s3/remove-unfinished';
import { openBucket } from '../../../../storage/objects/s3/s3-bucket';
import { openS3Store } from '../../../../storage/objects/s3/s3-store';
import { describeWithGoTool } from '../../../support/go-tool';
import { openTestBucket, S3_START_MS, type TestBucket } from '../../../support/s3';
import { describeObjectStore } from '../object-store-conformance';

const DAY_MS = 24 * 3_600_000;
let bucket: TestBucket;

describeWithGoTool('versitygw', 'the S3 store', () => {
  beforeAll(async () => {
    bucket = await openTestBucket();
  }, S3_START_MS);

  describe('as an object store', () => {
    describeObjectStore(() => openS3Store({ ...bucket.options, prefix: 'team/nightshift' }));
  });

  describe('with long and many objects', describeLongAndMany);

  describe('after a crash, and with wrong credentials', describeFaults);
});

function describeLongAndMany(): void {
  let store: ObjectStore;
  beforeAll(async () => {
    store = await openS3Store(bucket.options);
  });
  afterAll(() => store.close());

  it('keeps a long object byte for byte', async () => {
    const body = randomBytes(20_000_000);
    async function* pieces() {
      for (let at = 0; at < body.length; at += 333_333) yield body.subarray(at, at + 333_333);
    }
    expect(await store.putIfAbsent('long/streamed', pieces())).toBe('created');
    expect(await store.putIfAbsent('long/whole', body)).toBe('created');
    expect((await store.read('long/streamed')).equals(body)).toBe(true);
    expect((await store.read('long/whole')).equals(body)).toBe(true);
  });

  it('joins long objects on the server', async () => {
    const parts = [randomBytes(9_000_000), randomBytes(5 * 1024 ** 2), Buffer.from('end')];
    for (const [i, part] of parts.entries()) await store.putIfAbsent(`join/${i}`, part);
    const keys = parts.map((_, i) => `join/${i}`);
    expect(await store.concatenate('joined/whole', keys)).toBe('created');
    expect((await store.read('joined/whole')).equals(Buffer.concat(parts))).toBe(true);
    expect(await store.concatenate('joined/whole', keys)).toBe('exists');
  });

  it('lists more objects than a page holds, in key order, without the id of the store', async () => {
    await store.storeId();
    const names = Array.from({ length: 1_010 }, (_, i) => `many/${String(i).padStart(4, '0')}`);
    mkdirSync(join(bucket.folder, 'many'));
    for (const name of names) writeFileSync(join(bucket.folder, name), 'x');
    const found: string[] = [];
    for await (const { key } of store.list('many/')) found.push(key);
    expect(found).toEqual(names);
    const behind: string[] = [];
    for await (const { key } of store.list('many/', { after: 'many/08' })) behind.push(key);
    expect(behind).toEqual(names.slice(800));
    for await (const { key } of store.list('s')) expect(key).not.toBe('store-id');
  });
}

function describeFaults(): void {
  it('removes what crashed writers left after a day, and only below its prefix', async () => {
    const opened = await openBucket({ ...bucket.options, prefix: 'crashed' });
    const begin = (key: string) => MultipartUpload.begin(opened, newObject(key), { copies: false });
    const upload = await begin('a/b');
    await upload.send(1, Buffer.alloc(1_000));
    await begin('a/c');
    expect(await removeUnfinishedUploads(opened, Date.now() + DAY_MS - 60_000)).toBe(0);
    const elsewhere = await openBucket({ ...bucket.options, prefix: 'other' });
    expect(await removeUnfinishedUploads(elsewhere, Date.now() + 2 * DAY_MS)).toBe(0);
    expect(await removeUnfinishedUploads(opened, Date.now() + 2 * DAY_MS)).toBe(2);
    await expect(upload.complete()).rejects.toMatchObject({ code: 'object_store_failed' });
    opened.client.destroy();
    elsewhere.client.destroy();
  });

  it('says that the key is wrong if its secret is', async () => {
    const credentials = { ...bucket.options.credentials, secretAccessKey: 'other' };
    await expect(openS3Store({ ...bucket.options, credentials })).rejects.toMatchObject({
      code: 'object_store_failed',
      message: expect.stringMatching(/access key|lack a right/),
    });
  });
}
