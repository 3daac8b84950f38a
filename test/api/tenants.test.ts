import { operations } from '../../api/openapi/operations';
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

/** Bob cannot find out that objects of ann exist. */

const as = (tenant: string | Buffer) => ({ 'x-maas-username': String(tenant) });
const [ann, bob] = [as('ann'), as('bob')];

let api: TestApi;
/** Ids of ann's objects. */
let own: Record<'file' | 'upload' | 'part' | 'batch', string>;
/** A batch of hers that retention has removed; lists still know its position. */
const REMOVED = `batch_${'1'.repeat(32)}`;
beforeAll(async () => {
  api = await openTestApi({ auth: { mode: 'header' } });
  const file = (await api.call(upload(batchForm(), ann))).body.id;
  const open = { filename: 'a', purpose: 'user_data', bytes: LINE.length, mime_type: 'x' };
  const session = (await api.call(post('/v1/uploads', open, ann))).body.id;
  const part = (await addPart(session, ann)).body.id;
  own = { file, upload: session, part, batch: (await createBatch(file, ann)).body.id };
  await api.database.pool.query(`insert into removed_batches values ($1, 'ann', 1, 1, 1)`, [
    REMOVED,
  ]);
}, POSTGRES_START_MS);
afterAll(() => api.close());

/** Every row of every table, and every object. A refused request changes none of them. */
async function everything(): Promise<unknown> {
  const { pool } = api.database;
  const { rows: tables } = await pool.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = current_schema() order by 1`,
  );
  const rows: Record<string, unknown> = {};
  for (const { name } of tables) {
    rows[name] = (await pool.query(`select * from ${name} t order by t::text`)).rows;
  }
  return { rows, keys: await api.keys(), cancelled: [...api.batchWorkflows.cancelled] };
}

function addPart(session: string, headers: Record<string, string>): Promise<Answer> {
  return api.call(uploadPart(session, LINE, headers));
}

function createBatch(file: string, headers: Record<string, string>): Promise<Answer> {
  const body = { input_file_id: file, endpoint: '/v1/responses', completion_window: '24h' };
  return api.call(post('/v1/batches', body, headers));
}

const UNKNOWN = {
  file: 'file-0000000000000000000000',
  upload: `upload_${'0'.repeat(32)}`,
  part: `part_${'0'.repeat(32)}`,
  batch: `batch_${'0'.repeat(32)}`,
};

/** Every operation on one object, and HEAD for each GET. New routes are included without a change here. */
const ON_ONE = operations([])
  .filter(({ path }) => path.includes('{'))
  .flatMap(({ method, path }) => {
    const name = method.toUpperCase();
    return (name === 'GET' ? ['GET', 'HEAD'] : [name]).map((verb) => [verb, path] as const);
  });

it('covers all operations on one object', () => {
  expect(ON_ONE.length).toBeGreaterThanOrEqual(11);
});

it.each(ON_ONE)(
  "answers %s %s with another tenant's id like an unknown one, and changes nothing",
  async (verb, path) => {
    const answer = async (ids: typeof UNKNOWN) => {
      const url = path
        .replace('{file_id}', ids.file)
        .replace('{upload_id}', ids.upload)
        .replace('{batch_id}', ids.batch);
      const isParts = url.endsWith('/parts');
      const { status, bytes } = isParts
        ? await addPart(ids.upload, bob)
        : url.endsWith('/complete')
          ? await api.call(post(url, { part_ids: [ids.part] }, bob))
          : await api.call({ method: verb, url, headers: bob });
      const text = bytes.toString();
      return {
        status,
        text: Object.values(ids).reduce((rest, id) => rest.replaceAll(id, 'ID'), text),
      };
    };
    const before = await everything();
    const foreign = await answer(own);
    expect(foreign.status).toBe(404);
    expect(foreign).toEqual(await answer(UNKNOWN));
    expect(await everything()).toEqual(before);
  },
);

it.each(['/v1/files', '/v1/batches'])(
  'shows nothing of another tenant in %s, nor by a cursor',
  async (url) => {
    const page = await api.call({ method: 'GET', url, headers: bob });
    expect(page.body.data).toEqual([]);
    const kind = url === '/v1/files' ? 'file' : 'batch';
    const after = async (id: string) => {
      const { status, body } = await api.call({
        method: 'GET',
        url: `${url}?after=${id}`,
        headers: bob,
      });
      return { status, error: body.error };
    };
    expect(await after(own[kind])).toMatchObject({ status: 400, error: { param: 'after' } });
    expect(await after(own[kind])).toEqual(await after(UNKNOWN[kind]));
    if (kind === 'batch') expect(await after(REMOVED)).toEqual(await after(UNKNOWN.batch));
  },
);

it.each([
  ['files', () => own.file],
  ['batches', () => own.batch],
  ['batches', () => REMOVED],
])('accepts each object of %s as a cursor of its owner', async (list, id) => {
  const headers = ann;
  const url = `/v1/${list}?after=${id()}`;
  expect((await api.call({ method: 'GET', url, headers })).status).toBe(200);
});

it("refuses a part of another tenant's upload", async () => {
  const open = { filename: 'a', purpose: 'user_data', bytes: LINE.length, mime_type: 'x' };
  const mine = (await api.call(post('/v1/uploads', open, bob))).body.id;
  const complete = async (id: string) => {
    const answer = await api.call(post(`/v1/uploads/${mine}/complete`, { part_ids: [id] }, bob));
    return { status: answer.status, error: answer.body.error };
  };
  expect(await complete(own.part)).toMatchObject({ status: 400, error: { param: 'part_ids' } });
  expect(await complete(own.part)).toEqual(await complete(UNKNOWN.part));
});

it("treats another tenant's file like one that does not exist", async () => {
  const { status, body } = await createBatch(own.file, bob);
  expect([status, body.status]).toEqual([200, 'validating']);
  const { rows } = await api.database.pool.query(
    'select input_object_key as key from batches where id = $1',
    [body.id],
  );
  // The row has no object key, so ingestion will report a missing file.
  expect(rows).toEqual([{ key: null }]);
});

it.each(['/v1/files', '/v1/batches'])('keeps the idempotency keys of %s apart', async (url) => {
  const send = (headers: Record<string, string>) => {
    const keyed = { ...headers, 'idempotency-key': 'the same' };
    const body = { input_file_id: 'file-x', endpoint: '/v1/responses', completion_window: '24h' };
    return api.call(url === '/v1/files' ? upload(batchForm(), keyed) : post(url, body, keyed));
  };
  const [first, again, other] = [
    await send(as('cleo')),
    await send(as('cleo')),
    await send(as('dan')),
  ];
  expect([first.status, again.status, other.status]).toEqual([200, 200, 200]);
  expect(again.body.id).toBe(first.body.id);
  expect(other.body.id).not.toBe(first.body.id);
});

describe('the header that names the tenant', () => {
  const ask = (headers: Record<string, string | string[]>) =>
    api.call({ method: 'GET', url: '/v1/files', headers });
  const utf8 = (text: string) => Buffer.from(text).toString('latin1');

  it.each([
    ['letters of every alphabet', utf8('日本 é'), '日本 é'],
    ['a name of 256 letters', utf8('é'.repeat(256)), 'é'.repeat(256)],
    ['a name with a space that breaks no line at its end', utf8('à'), 'à'],
  ])('may have %s', async (_what, value, tenant) => {
    const { status, headers } = await ask({ 'x-maas-username': value });
    expect(status).toBe(200);
    expect(Buffer.from(headers['openai-organization'] ?? '', 'latin1').toString()).toBe(tenant);
  });

  it.each([
    ['two different values', ['ann', 'bob']],
    ['the same value twice', ['ann', 'ann']],
    ['an empty one beside it', ['', 'ann']],
    ['an empty one behind it', ['ann', '']],
    ['257 letters', 'x'.repeat(257)],
    ['bytes that are no UTF-8', 'ann\xe9'],
    ['a tab inside', 'a\tb'],
  ])('is refused with %s', async (_what, value) => {
    const { status, body } = await ask({ 'x-maas-username': value });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ param: null, code: null });
    expect(body.error.message).toContain('X-MaaS-Username');
  });

  it.each([[''], ['  '], [undefined]])('is required: %j', async (value) => {
    const { status, body } = await ask(value === undefined ? {} : { 'x-maas-username': value });
    expect(status).toBe(401);
    expect(body.error).toMatchObject({ type: 'invalid_request_error', param: null, code: null });
    expect(body.error.message).toContain('X-MaaS-Username is missing');
    expect(body.error.message).toContain('auth.require_tenant');
  });
});
