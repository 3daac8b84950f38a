import {
  batchForm,
  LINE,
  openTestApi,
  post,
  type TestApi,
  upload,
  uploadPart,
} from '../support/api';
import { loseNextCommit } from '../support/lost-commit';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => (api = await openTestApi()), POSTGRES_START_MS);
afterAll(() => api.close());

const content = async (fileId: string) =>
  (await api.call({ method: 'GET', url: `/v1/files/${fileId}/content` })).bytes.toString();

/** Repeats a request that was answered with 503, as SDKs do. */
async function sentAgain(send: (headers: Record<string, string>) => ReturnType<TestApi['call']>) {
  loseNextCommit(api.database.pool);
  expect((await send({})).status).toBe(503);
  return send({ 'x-stainless-retry-count': '1' });
}

describe('a request whose commit PostgreSQL could not confirm', () => {
  it('keeps the bytes of a file, and its repetition returns that file', async () => {
    const key = { 'idempotency-key': 'cut off' };
    const again = await sentAgain((headers) =>
      api.call(upload(batchForm(), { ...key, ...headers })),
    );
    expect(again.status).toBe(200);
    expect(await content(again.body.id)).toBe(LINE);
  });

  it('keeps the bytes of a part, whose repetition does not count twice', async () => {
    const id = await openUpload();
    const part = await sentAgain((headers) => sendPart(id, headers));
    expect(part.status).toBe(200);
    const { rows } = await api.database.pool.query<{ key: string }>(
      `select 'uploads/' || upload_id || '/' || id as key from upload_parts where upload_id = $1`,
      [id],
    );
    expect(rows).toHaveLength(2);
    expect(await api.keys()).toEqual(expect.arrayContaining(rows.map(({ key }) => key)));
    const done = await complete(id, part.body.id);
    expect(done.status).toBe(200);
    expect(await content(done.body.file.id)).toBe(LINE);
  });

  it('keeps the bytes of a completed upload', async () => {
    const id = await openUpload();
    const part = (await sendPart(id)).body.id;
    loseNextCommit(api.database.pool);
    const done = await complete(id, part);
    expect(done.status).toBe(200);
    expect(await content(done.body.file.id)).toBe(LINE);
  });
});

async function openUpload(): Promise<string> {
  const fields = { filename: 'in.jsonl', purpose: 'batch', mime_type: 'application/jsonl' };
  return (await api.call(post('/v1/uploads', { ...fields, bytes: LINE.length }))).body.id;
}

function sendPart(id: string, headers: Record<string, string> = {}) {
  return api.call(uploadPart(id, LINE, headers));
}

function complete(id: string, part: string) {
  return api.call(post(`/v1/uploads/${id}/complete`, { part_ids: [part] }));
}
