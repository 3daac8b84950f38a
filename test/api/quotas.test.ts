import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  type Answer,
  batchForm,
  LINE,
  openTestApi,
  post,
  type TestApi,
  upload,
  uploadPart,
} from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

const MAX_PARTS = 4;
const ROOM = 1_000_000;

let api: TestApi;
beforeAll(async () => {
  const limits = { maxFiles: 3, maxUploads: 2, maxUploadParts: MAX_PARTS, maxStoredBytes: ROOM };
  const config = { limits: { tenant: { max_upload_parts: MAX_PARTS } } };
  api = await openTestApi({ auth: { mode: 'header' }, limits, config });
}, POSTGRES_START_MS);
afterAll(() => api.close());
beforeEach(async () => {
  await api.database.pool.query('truncate files, batches, uploads, upload_parts, idempotency_keys');
});

const as = (tenant: string, more = {}) => ({ 'x-maas-username': tenant, ...more });
const empty = [
  { name: 'purpose', value: 'user_data' },
  { name: 'file', value: '', filename: 'a' },
];
const sendEmpty = (tenant = 'ann') => api.call(upload(empty, as(tenant)));
const FIELDS = { filename: 'a', purpose: 'user_data', bytes: 100, mime_type: 'text/plain' };
const open = (changes = {}, tenant = 'ann') =>
  api.call(post('/v1/uploads', { ...FIELDS, ...changes }, as(tenant)));
const sendPart = (id: string, value: string | Buffer, headers = {}) =>
  api.call(uploadPart(id, value, as('ann', headers)));
const complete = (id: string, body: object) =>
  api.call(post(`/v1/uploads/${id}/complete`, body, as('ann')));
const several = <T>(count: number, act: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, act));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort();

describe('the number of files', () => {
  it('is limited, also for empty files and simultaneous requests', async () => {
    const answers = await several(6, sendEmpty);
    expect(statuses(answers)).toEqual([200, 200, 200, 429, 429, 429]);
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.body.error).toEqual({
      message: 'You may have 3 files, open uploads included: delete files that you do not need.',
      type: 'insufficient_quota',
      param: null,
      code: 'insufficient_quota',
    });
    expect((await sendEmpty('bob')).status).toBe(200);
    const url = `/v1/files/${answers.find(({ status }) => status === 200)?.body.id}`;
    await api.call({ method: 'DELETE', url, headers: as('ann') });
    expect((await sendEmpty()).status).toBe(200);
  });

  it('includes open uploads, which become files', async () => {
    const first = (await open({ bytes: 1 })).body.id;
    expect((await open()).status).toBe(200);
    expect((await sendEmpty()).status).toBe(200);
    expect((await sendEmpty()).status).toBe(429);
    const part = (await sendPart(first, 'x')).body.id;
    expect((await complete(first, { part_ids: [part] })).status).toBe(200);
    expect((await sendEmpty()).status).toBe(429);
  });

  it('does not include results of batches', async () => {
    await sendEmpty();
    const statement = `insert into files (id, tenant, purpose, filename, bytes, object_key, created_at, batch_id)
      select 'file-r' || n, 'ann', 'batch_output', 'r', 0, 'r' || n, 1, 'batch_1' from generate_series(1, 5) n`;
    await api.database.pool.query(statement);
    expect((await sendEmpty()).status).toBe(200);
  });
});

it('limits the number of open uploads, also for simultaneous requests', async () => {
  const answers = await several(5, () => open());
  expect(statuses(answers)).toEqual([200, 200, 429, 429, 429]);
  expect(answers.find(({ status }) => status === 429)?.body.error).toMatchObject({
    message: 'You may have 2 open uploads: complete or cancel some.',
    code: 'insufficient_quota',
  });
  const id = answers.find(({ status }) => status === 200)?.body.id as string;
  await api.call(post(`/v1/uploads/${id}/cancel`, {}, as('ann')));
  expect((await open()).status).toBe(200);
});

describe('the number of parts', () => {
  it('is limited, also for empty parts and simultaneous requests, and no object remains', async () => {
    const { id } = (await open()).body;
    const before = (await api.keys()).length;
    const answers = await several(7, () => sendPart(id, ''));
    expect(statuses(answers)).toEqual([200, 200, 200, 200, 400, 400, 400]);
    expect(answers.find(({ status }) => status === 400)?.body.error).toMatchObject({
      message: expect.stringContaining('can have 4 parts'),
      param: 'data',
    });
    expect((await api.keys()).length).toBe(before + MAX_PARTS);
  });

  it('does not keep a retry from finding the part of its first attempt', async () => {
    const { id } = (await open()).body;
    const made = await several(MAX_PARTS, () => sendPart(id, 'x'));
    const retry = { 'x-stainless-retry-count': '1' };
    const again = await sendPart(id, 'x', retry);
    expect(again.status).toBe(200);
    expect(made.map(({ body }) => body.id as string)).toContain(again.body.id);
    expect((await sendPart(id, 'y', retry)).status).toBe(400);
  });
});

describe('a file larger than the remaining quota', () => {
  const declare = (url: string, length: number, headers = {}) => {
    const request = upload(batchForm(), as('ann', headers));
    // More bytes are declared than are sent, so an answer must have come before the body was read.
    return api.call({
      ...request,
      url,
      headers: { ...request.headers, 'content-length': `${length}` },
    });
  };

  it('is refused before the file is read', async () => {
    const before = await api.keys();
    const answer = await declare('/v1/files', ROOM + 70_000);
    expect([answer.status, answer.body.error]).toEqual([
      429,
      {
        message: `The file is larger than the ${ROOM} bytes that you have room for: delete files that you do not need.`,
        type: 'insufficient_quota',
        param: null,
        code: 'insufficient_quota',
      },
    ]);
    expect((await declare('/v1/files', ROOM + 70_000, { 'idempotency-key': 'k' })).status).toBe(
      429,
    );
    expect(await api.keys()).toEqual(before);
  });

  it('is refused before a part is read that is larger than its upload', async () => {
    const { id } = (await open()).body;
    const answer = await declare(`/v1/uploads/${id}/parts`, 70_000);
    expect([answer.status, answer.body.error.param]).toEqual([400, 'data']);
  });

  it('is refused as soon as the quota is passed if no length was declared', async () => {
    const before = await api.keys();
    const request = upload(batchForm(LINE.repeat(20_000)), as('ann'));
    const answer = await api.call({ ...request, payload: Readable.from([request.payload]) });
    expect(await api.keys()).toEqual(before);
    expect([answer.status, answer.body.error.code]).toEqual([429, 'insufficient_quota']);
  });
});

describe('stored texts', () => {
  it.each([
    ['x'.repeat(500_000), 400],
    ['é'.repeat(128), 400],
    ['x'.repeat(255), 200],
  ])('include a mime_type of at most 255 bytes', async (mime_type, status) => {
    const answer = await open({ mime_type });
    expect(answer.status).toBe(status);
    if (status !== 400) return;
    expect(answer.body.error).toEqual({
      message: "Invalid 'mime_type': expected a string of at most 255 bytes.",
      type: 'invalid_request_error',
      param: 'mime_type',
      code: 'string_above_max_length',
    });
  });

  it('are short, even if clients send long ones', async () => {
    const long = '😀'.repeat(30_000);
    const { id } = (await open({ filename: long })).body;
    const { rows } = await api.database.pool.query(
      'select max(octet_length(u::text)) as bytes from uploads u where id = $1',
      [id],
    );
    expect(rows[0].bytes).toBeLessThan(4_096);
    const answer = await open({ [long]: 1 });
    expect(answer.body.error.code).toBe('unknown_parameter');
    expect(answer.bytes.length).toBeLessThan(2_048);
  });
});

describe('completions that are refused', () => {
  const md5 = createHash('md5').update('not this').digest('hex');

  it('are possible 20 times, and the upload can be cancelled after that', async () => {
    const { id } = (await open({ bytes: 1 })).body;
    const part_ids = [(await sendPart(id, 'x')).body.id];
    for (let i = 0; i < 20; i++) {
      expect((await complete(id, { part_ids, md5 })).body.error.param).toBe('md5');
    }
    const last = await complete(id, { part_ids });
    expect([last.status, last.body.error.message]).toEqual([
      400,
      expect.stringContaining('20 completions of this upload were refused'),
    ]);
    const cancel = await api.call(post(`/v1/uploads/${id}/cancel`, {}, as('ann')));
    expect(cancel.body.status).toBe('cancelled');
  });

  it('do not count if the server was at fault', async () => {
    const { id } = (await open({ bytes: 1 })).body;
    const part_ids = [(await sendPart(id, 'x')).body.id];
    const broken = jest.spyOn(api.store, 'concatenate').mockImplementation(() => {
      throw new Error('no disk');
    });
    for (let i = 0; i < 21; i++) expect((await complete(id, { part_ids })).status).toBe(500);
    broken.mockRestore();
    expect((await complete(id, { part_ids })).status).toBe(200);
  });
});
