import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => (api = await openTestApi()), POSTGRES_START_MS);
afterAll(() => api.close());

const BATCH = {
  input_file_id: 'file-none',
  endpoint: '/v1/responses',
  completion_window: '24h',
};
const REQUESTS = {
  '/v1/batches': post('/v1/batches', BATCH),
  '/v1/files': upload(batchForm()),
};

async function count(table: string): Promise<number> {
  const text = `select count(*)::int as n from ${table}`;
  return (await api.database.pool.query<{ n: number }>(text)).rows[0]?.n ?? -1;
}
const everything = async () => [
  await count('files'),
  await count('batches'),
  await count('idempotency_keys'),
  (await api.keys()).length,
];

describe.each(['/v1/batches', '/v1/files'] as const)('POST %s', (url) => {
  const request = REQUESTS[url];
  const send = (key: string | string[]) =>
    api.call({ ...request, headers: { ...request.headers, 'idempotency-key': key as string } });

  it.each([
    ['two keys', ['a', 'b']],
    ['the same key twice', ['a', 'a']],
    ['an empty one beside it', ['a', '']],
    ['an empty one before it', ['', 'a']],
    ['three keys', ['a', 'b', 'c']],
  ])('refuses %s, and creates nothing', async (_what, keys) => {
    const before = await everything();
    const { status, body } = await send(keys);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 'invalid_value', param: 'Idempotency-Key' });
    expect(body.error.message).toContain('one key');
    expect(await everything()).toEqual(before);
  });

  it('accepts one Idempotency-Key', async () => {
    const { id } = (await send('one')).body;
    expect((await send(['one'])).body.id).toBe(id);
  });
});
