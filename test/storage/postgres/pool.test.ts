import { openPool } from '../../../storage/postgres/pool';
import { inTransaction, query } from '../../../storage/postgres/sql';
import { POSTGRES_START_MS, type TestDatabase, withDatabase } from '../../support/postgres';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy';

let database: TestDatabase;
let proxy: TcpProxy;
let pool: ReturnType<typeof openPool>;

beforeAll(async () => {
  database = await withDatabase();
  const url = new URL(database.url);
  proxy = await startTcpProxy(Number(url.port));
  url.port = String(proxy.port);
  // A statement on a server that hangs fails after 1.5 s: its own limit and one second.
  pool = openPool(url.href, { statementTimeoutMs: 500, connectTimeoutMs: 500, max: 2 });
}, POSTGRES_START_MS);
afterAll(async () => {
  await proxy?.close();
  await pool?.end();
  await database?.close();
});
afterEach(() => proxy.become('pass'));

const one = async (): Promise<unknown> =>
  (await query<{ one: number }>(pool, 'select 1 as one'))[0]?.one;

describe.each(['refuse', 'hang'] as const)('a database that begins to %s', (mood) => {
  it.each([
    ['statement', one],
    ['transaction', () => inTransaction(pool, (client) => query(client, 'select 1 as one'))],
  ])('fails a %s in time with a retryable error, and serves the next one', async (_what, work) => {
    await work();
    await proxy.become(mood);
    for (let round = 0; round < 3; round++) {
      // A server that hangs never answers in this test, so the pool itself must give up.
      await expect(work()).rejects.toMatchObject({ code: 'postgres_unavailable', retryable: true });
    }
    await proxy.become('pass');
    expect(await one()).toBe(1);
  });
});
