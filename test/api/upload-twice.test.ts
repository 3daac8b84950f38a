import { createFileRepository } from '../../storage/postgres/files';
import { createUploadRepository } from '../../storage/postgres/uploads';
import { LINE, openTestApi, post, type TestApi, uploadPart } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

/** Two processes of the API, on one database and one store, complete the same upload at once. */

let base: TestApi;
let processes: readonly TestApi[];
/** Completions under way. Each waits for the other, so that neither sees the other's result. */
let joining: number;

beforeAll(async () => {
  base = await openTestApi();
  processes = [await oneMore(), await oneMore()];
}, POSTGRES_START_MS);
afterAll(async () => {
  for (const api of [...processes, base]) await api.close();
});
beforeEach(() => (joining = 0));

function oneMore(): Promise<TestApi> {
  const { pool } = base.database;
  const rows = createUploadRepository(pool);
  const noteJoin = async (id: string, key: string): Promise<void> => {
    await rows.noteJoin(id, key);
    joining++;
    await until(() => joining === 2, 10_000, 'both completions to be under way');
  };
  const uploads = { ...rows, noteJoin };
  return openTestApi({
    deps: { uploads, files: createFileRepository(pool), store: base.store },
  });
}

async function openWithPart(): Promise<{ id: string; part: string }> {
  const fields = { filename: 'f', purpose: 'batch', mime_type: 'x', bytes: LINE.length };
  const { id } = (await base.call(post('/v1/uploads', fields))).body;
  const part = await base.call(uploadPart(id, LINE));
  return { id, part: part.body.id };
}

it('two simultaneous completions make one file, which every completion returns', async () => {
  const { id, part } = await openWithPart();
  const complete = (api: TestApi, part_ids = [part]) =>
    api.call(post(`/v1/uploads/${id}/complete`, { part_ids }));
  const both = await Promise.all(processes.map((api) => complete(api)));
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  expect(both[1]?.body).toEqual(both[0]?.body);
  expect((await complete(base)).body).toEqual(both[0]?.body);
  expect((await complete(base, [part, part])).status).toBe(400);

  const { rows } = await base.database.pool.query('select id, object_key as key from files');
  expect(rows).toEqual([{ id: both[0]?.body.file.id, key: expect.any(String) }]);
  // The object of the second completion is deleted, and so are the parts.
  expect(await base.keys()).toEqual([rows[0].key]);
});
