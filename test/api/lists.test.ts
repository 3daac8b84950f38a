import { createSweepRows } from '../../storage/postgres/sweep';
import { batchForm, LINE, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ auth: { mode: 'header', require_tenant: false } });
}, POSTGRES_START_MS);
afterAll(() => api.close());

const DAY_MS = 24 * 3_600_000;
const TENANT = 'x-maas-username';
let tenants = 0;

/** A new tenant with files of these purposes, oldest first. */
async function tenantWithFiles(...purposes: string[]): Promise<{ tenant: string; ids: string[] }> {
  const tenant = `tenant-${++tenants}`;
  const ids: string[] = [];
  for (const purpose of purposes) {
    const form = [{ name: 'purpose', value: purpose }, batchForm()[1]!];
    const { body } = await api.call(upload(form, { [TENANT]: tenant }));
    ids.push(body.id as string);
  }
  return { tenant, ids };
}

const list = (tenant: string, query: string, what = 'files') =>
  api.call({ method: 'GET', url: `/v1/${what}${query}`, headers: { [TENANT]: tenant } });
const remove = (tenant: string, id: string) =>
  api.call({ method: 'DELETE', url: `/v1/files/${id}`, headers: { [TENANT]: tenant } });
const idsOf = (answer: { body: { data: { id: string }[] } }) => answer.body.data.map((o) => o.id);

/** Follows the cursor as the SDKs do. */
async function pageThrough(tenant: string, query: string, what = 'files'): Promise<string[][]> {
  const pages: string[][] = [];
  let after = '';
  for (let calls = 0; calls < 20; calls++) {
    const answer = await list(tenant, `?${query}${after}`, what);
    expect(answer.status).toBe(200);
    pages.push(idsOf(answer));
    if (!answer.body.has_more) return pages;
    after = `&after=${answer.body.last_id}`;
  }
  throw new Error('the list does not end');
}

describe('lists of files', () => {
  it('are in order of creation, newest or oldest first, with all five keys', async () => {
    const { tenant, ids } = await tenantWithFiles('batch', 'batch', 'batch');
    const newest = await list(tenant, '');
    expect(newest.body).toEqual({
      object: 'list',
      data: expect.any(Array),
      first_id: ids[2],
      last_id: ids[0],
      has_more: false,
    });
    expect(idsOf(newest)).toEqual(ids.toReversed());
    expect(idsOf(await list(tenant, '?order=asc'))).toEqual(ids);
  });

  it('show each file once, page by page', async () => {
    const { tenant, ids } = await tenantWithFiles('batch', 'batch', 'batch', 'batch', 'batch');
    expect(await pageThrough(tenant, 'limit=2&order=asc')).toEqual([
      ids.slice(0, 2),
      ids.slice(2, 4),
      ids.slice(4),
    ]);
    expect((await pageThrough(tenant, 'limit=2')).flat()).toEqual(ids.toReversed());
    expect((await pageThrough(tenant, 'limit=5')).length).toBe(1);
  });

  it('are filtered by purpose before they are divided into pages', async () => {
    const { tenant, ids } = await tenantWithFiles('batch', 'vision', 'batch', 'vision');
    expect(await pageThrough(tenant, 'limit=1&purpose=vision')).toEqual([[ids[3]], [ids[1]]]);
  });

  it('have null ids on an empty page', async () => {
    expect((await list('nobody', '')).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  it('continue after a file that was deleted in the meantime, under any purpose', async () => {
    const { tenant, ids } = await tenantWithFiles('batch', 'vision', 'batch');
    await remove(tenant, ids[2]!);
    expect(idsOf(await list(tenant, `?after=${ids[2]}`))).toEqual([ids[1], ids[0]]);
    expect(idsOf(await list(tenant, `?after=${ids[2]}&purpose=vision`))).toEqual([ids[1]]);
  });

  it('forget the position of a deleted file after a day', async () => {
    const { tenant, ids } = await tenantWithFiles('batch', 'batch');
    await remove(tenant, ids[1]!);
    api.clock.nowMs += DAY_MS;
    try {
      const answer = await list(tenant, `?after=${ids[1]}`);
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({ code: 'invalid_value', param: 'after' });
    } finally {
      api.clock.nowMs -= DAY_MS;
    }
  });

  it('never show files of another tenant, nor accept them as a cursor', async () => {
    const one = await tenantWithFiles('batch');
    const other = await tenantWithFiles('batch');
    expect(idsOf(await list(other.tenant, ''))).toEqual(other.ids);
    expect((await list(other.tenant, `?after=${one.ids[0]}`)).status).toBe(400);
    const url = `/v1/files/${one.ids[0]}`;
    const headers = { [TENANT]: other.tenant };
    expect((await api.call({ method: 'GET', url, headers })).status).toBe(404);
    expect((await api.call({ method: 'GET', url: `${url}/content`, headers })).status).toBe(404);
    expect((await remove(other.tenant, one.ids[0]!)).status).toBe(404);
  });

  it.each([
    ['limit=0', 'limit', 'integer_below_min_value'],
    ['limit=-1', 'limit', 'integer_below_min_value'],
    ['limit=10001', 'limit', 'integer_above_max_value'],
    [`limit=${'9'.repeat(30)}`, 'limit', 'integer_above_max_value'],
    ['limit=', 'limit', 'invalid_type'],
    ['limit=ten', 'limit', 'invalid_type'],
    ['limit=1.5', 'limit', 'invalid_type'],
    ['limit=1&limit=2', 'limit', 'invalid_type'],
    ['order=up', 'order', 'invalid_value'],
    ['order=', 'order', 'invalid_value'],
    ['after=file-none', 'after', 'invalid_value'],
    ['after=', 'after', 'invalid_value'],
    ['after=a%00b', 'after', 'invalid_value'],
    ['purpose=%00', 'purpose', 'invalid_value'],
  ])('refuse %s', async (query, param, code) => {
    const answer = await list('nobody', `?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ param, code, type: 'invalid_request_error' });
  });
});

describe('lists of batches', () => {
  async function tenantWithBatches(count: number): Promise<{ tenant: string; ids: string[] }> {
    const { tenant, ids: files } = await tenantWithFiles('batch');
    const ids: string[] = [];
    const body = { input_file_id: files[0], endpoint: '/v1/completions', completion_window: '24h' };
    for (let i = 0; i < count; i++) {
      const answer = await api.call(post('/v1/batches', body, { [TENANT]: tenant }));
      ids.push(answer.body.id as string);
    }
    return { tenant, ids };
  }

  it('show each batch once, newest first, page by page', async () => {
    const { tenant, ids } = await tenantWithBatches(5);
    const pages = await pageThrough(tenant, 'limit=2', 'batches');
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat()).toEqual(ids.toReversed());
  });

  it('have 20 batches by default, and none with limit=0', async () => {
    const { tenant } = await tenantWithBatches(21);
    expect((await list(tenant, '', 'batches')).body).toMatchObject({ has_more: true });
    expect((await list(tenant, '', 'batches')).body.data).toHaveLength(20);
    expect((await list(tenant, '?limit=0', 'batches')).body).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    });
  });

  it('are not affected by batches that are created between two pages', async () => {
    const { tenant, ids } = await tenantWithBatches(5);
    const first = await list(tenant, '?limit=3', 'batches');
    const body = { input_file_id: 'file-x', endpoint: '/v1/responses', completion_window: '24h' };
    await api.call(post('/v1/batches', body, { [TENANT]: tenant }));
    const second = await list(tenant, `?limit=3&after=${first.body.last_id}`, 'batches');
    expect([...idsOf(first), ...idsOf(second)]).toEqual(ids.toReversed());
    expect(second.body).toMatchObject({ first_id: ids[1], last_id: ids[0], has_more: false });
  });

  it('accept every limit from 1 to 100, and ignore unknown parameters', async () => {
    const { tenant, ids } = await tenantWithBatches(2);
    for (const query of ['?limit=100', '?limit=2', '?order=asc&purpose=batch&foo=1']) {
      const answer = await list(tenant, query, 'batches');
      expect(idsOf(answer)).toEqual(ids.toReversed());
      expect(answer.body.has_more).toBe(false);
    }
    const one = await list(tenant, '?limit=1', 'batches');
    expect(one.body).toMatchObject({ first_id: ids[1], last_id: ids[1], has_more: true });
    const behind = await list(tenant, `?after=${ids[0]}`, 'batches');
    expect(behind.body).toMatchObject({ data: [], first_id: null, last_id: null, has_more: false });
  });

  it('continue for a day after a batch that retention has removed', async () => {
    const { tenant, ids } = await tenantWithBatches(3);
    const { pool } = api.database;
    const rows = createSweepRows(pool);
    await pool.query(`update batches set status = 'completed' where id = $1`, [ids[1]]);
    await rows.removeBatches(ids.slice(1));
    expect(idsOf(await list(tenant, '', 'batches'))).toEqual([ids[2], ids[0]]);
    const behind = () => list(tenant, `?after=${ids[1]}`, 'batches');
    expect(idsOf(await behind())).toEqual([ids[0]]);
    expect((await list('nobody', `?after=${ids[1]}`, 'batches')).status).toBe(400);
    await rows.forgetPlaces(10);
    expect(idsOf(await behind())).toEqual([ids[0]]);
    await pool.query('update removed_batches set removed_at = removed_at - 86400');
    await rows.forgetPlaces(10);
    expect((await behind()).body.error).toMatchObject({ code: 'invalid_value', param: 'after' });
  });

  it('never show the batches of another tenant', async () => {
    const { ids } = await tenantWithBatches(1);
    expect((await list('nobody', '', 'batches')).body.data).toEqual([]);
    expect((await list('nobody', `?after=${ids[0]}`, 'batches')).status).toBe(400);
  });

  it.each([
    ['limit=-1', 'limit', 'integer_below_min_value'],
    ['limit=101', 'limit', 'integer_above_max_value'],
    ['limit=99999999999999999999', 'limit', 'integer_above_max_value'],
    ['limit=', 'limit', 'invalid_type'],
    ['limit=ten', 'limit', 'invalid_type'],
    ['limit=1.5', 'limit', 'invalid_type'],
    ['limit=1e1', 'limit', 'invalid_type'],
    ['limit=0x1', 'limit', 'invalid_type'],
    ['limit=%201', 'limit', 'invalid_type'],
    ['limit=null', 'limit', 'invalid_type'],
    ['limit=1&limit=2', 'limit', 'invalid_type'],
    ['after=batch_none', 'after', 'invalid_value'],
    ['after=file-none', 'after', 'invalid_value'],
    ['after=', 'after', 'invalid_value'],
    ['after=%00', 'after', 'invalid_value'],
    ['after=a&after=b', 'after', 'invalid_type'],
    ['limit=0&after=batch_none', 'after', 'invalid_value'],
  ])('refuse %s', async (query, param, code) => {
    const answer = await list('nobody', `?${query}`, 'batches');
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ param, code });
  });
});

it('a file can be used in a batch as soon as it was answered', async () => {
  for (let i = 0; i < 5; i++) {
    const file = (await api.call(upload(batchForm(LINE)))).body;
    const body = { input_file_id: file.id, endpoint: '/v1/completions', completion_window: '24h' };
    const { id } = (await api.call(post('/v1/batches', body))).body;
    const { rows } = await api.database.pool.query<{ input_object_key: string | null }>(
      'select input_object_key from batches where id = $1',
      [id],
    );
    expect(rows[0]?.input_object_key).toContain(file.id);
  }
});
