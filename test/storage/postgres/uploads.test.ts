import { randomBytes } from 'node:crypto';
import { fileIdFromBytes, partIdFromBytes, uploadIdFromBytes } from '../../../core/names/ids';
import type { NewFile } from '../../../storage/postgres/files';
import { createUploadRepository, type UploadRepository } from '../../../storage/postgres/uploads';
import { useDatabase } from '../../support/postgres';

/** Guarantees of the statements themselves, without the API. */

const NOW_SEC = 1_000;

const database = useDatabase('uploads', 'upload_parts', 'files');
let uploads: UploadRepository;
beforeAll(() => {
  uploads = createUploadRepository(database.pool);
});

async function open(tenant = 'ann', rows = uploads): Promise<string> {
  const { id } = await rows.insert({
    ...{ id: uploadIdFromBytes(randomBytes(16)), tenant, filename: 'f', purpose: 'user_data' },
    ...{ mimeType: 'text/plain', bytes: 10, fileExpiresAfterSec: null },
    ...{ createdAtSec: NOW_SEC, expiresAtSec: NOW_SEC + 3_600 },
  });
  return id;
}

const get = (id: string, tenant = 'ann') => uploads.get({ id, tenant, nowSec: NOW_SEC });
const cancel = (id: string, tenant = 'ann') => uploads.cancel({ id, tenant, nowSec: NOW_SEC });

function complete(uploadId: string, partId: string): Promise<boolean> {
  const id = fileIdFromBytes(randomBytes(16));
  const file: NewFile = {
    ...{ id, tenant: 'ann', purpose: 'user_data', filename: 'f', bytes: 10 },
    ...{ sha256: Buffer.alloc(32), objectKey: `files/t/${id}` },
    ...{ createdAtSec: NOW_SEC, expiresAtSec: null },
  };
  return uploads.complete({ uploadId, partIds: [partId], file, nowSec: NOW_SEC });
}

async function fileIds(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>('select id from files');
  return rows.map(({ id }) => id);
}

it('shows an upload only to its tenant, and lets no other tenant cancel it', async () => {
  const id = await open();
  expect(await get(id, 'bob')).toBeNull();
  expect(await cancel(id, 'bob')).toBe(false);
  expect(await get(id)).toMatchObject({ status: 'pending' });
  expect(await cancel(id)).toBe(true);
  expect(await get(id)).toMatchObject({ status: 'cancelled' });
});

it('makes one file of an upload that is completed several times, from the parts of the first', async () => {
  const id = await open();
  const won = await Promise.all(['part_a', 'part_b', 'part_c'].map((part) => complete(id, part)));
  expect(won.filter(Boolean)).toHaveLength(1);
  const after = await get(id);
  expect(after).toMatchObject({ status: 'completed' });
  expect(after?.partIds).toEqual([['part_a', 'part_b', 'part_c'][won.indexOf(true)]]);
  expect(await complete(id, 'part_late')).toBe(false);
  expect(await get(id)).toEqual(after);
  expect(await fileIds()).toEqual([after?.fileId]);
});

it('makes no file of a cancelled upload, and does not cancel a completed one', async () => {
  const cancelled = await open();
  await cancel(cancelled);
  expect(await complete(cancelled, 'part_a')).toBe(false);
  expect(await fileIds()).toEqual([]);
  const completed = await open();
  await complete(completed, 'part_a');
  expect(await cancel(completed)).toBe(false);
  expect(await get(completed)).toMatchObject({ status: 'completed' });
});

it.each(['cancelled', 'completed'])('adds no part to an upload that is %s', async (status) => {
  const id = await open();
  await (status === 'cancelled' ? cancel(id) : complete(id, 'part_a'));
  const part = {
    ...{ id: partIdFromBytes(randomBytes(16)), uploadId: id, bytes: 1, createdAtSec: NOW_SEC },
    ...{ sha256: Buffer.alloc(32), isRetry: false },
  };
  expect(await uploads.addPart(part, NOW_SEC)).toEqual({ kind: 'closed' });
  expect(await uploads.countParts(id)).toBe(0);
});

it.each([
  ['number', { maxUploads: 1 }],
  ['number, files included', { maxFiles: 1 }],
  ['bytes', { maxStoredBytes: 10 }],
])('counts against the limit of its own tenant alone: %s', async (_what, limits) => {
  const limited = createUploadRepository(database.pool, limits);
  await open('ann', limited);
  await open('bob', limited);
  for (const tenant of ['ann', 'bob']) {
    await expect(open(tenant, limited)).rejects.toMatchObject({ code: 'quota_exceeded' });
  }
});
