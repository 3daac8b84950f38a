import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import OpenAI, { BadRequestError, ConflictError, NotFoundError, toFile } from 'openai';
import { LINE, openTestApi, type TestApi } from '../support/api';
import { undocumented } from '../support/documented';
import { POSTGRES_START_MS } from '../support/postgres';

/** The official client sends its requests to a listening API. */
let api: TestApi;
let client: OpenAI;
let requests = 0;
beforeAll(async () => {
  api = await openTestApi();
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = api.app.server.address() as AddressInfo;
  api.app.server.on('request', () => requests++);
  client = new OpenAI({
    apiKey: 'none',
    baseURL: `http://127.0.0.1:${port}/v1`,
    fetch: fetchAndCompare,
  });
}, POSTGRES_START_MS);
afterAll(() => api.close());

const differences: string[] = [];
let compared = 0;
afterAll(() => {
  expect(compared).toBeGreaterThan(30);
  expect(differences).toEqual([]);
});

/** Sends a request of the client, and compares it and its answer with the OpenAPI document. */
async function fetchAndCompare(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(url, init);
  const copy = request.clone();
  const response = await fetch(request);
  const { pathname, search } = new URL(copy.url);
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const found = await undocumented({
    method: copy.method,
    url: pathname + search,
    contentType: copy.headers.get('content-type') ?? undefined,
    payload: Buffer.from(await copy.arrayBuffer()),
    status: response.status,
    body: isJson ? await response.clone().json() : null,
  });
  compared++;
  differences.push(...found);
  return response;
}

const uploadLine = (name = 'in.jsonl') =>
  toFile(Buffer.from(LINE), name).then((file) => client.files.create({ file, purpose: 'batch' }));
const createBatch = async () =>
  client.batches.create({
    input_file_id: (await uploadLine()).id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });

it('the client uploads from a buffer, a web File and a stream', async () => {
  const stream = Object.assign(Readable.from([Buffer.from(LINE)]), { path: 'a/b/stream.jsonl' });
  const uploads = [
    await toFile(Buffer.from(LINE), 'größe "x".jsonl'),
    new File([LINE], 'web.jsonl'),
    await toFile(stream, 'stream.jsonl'),
  ];
  const names = [];
  for (const file of uploads) {
    const created = await client.files.create({ file, purpose: 'batch' });
    expect(created).toMatchObject({ bytes: LINE.length, status: 'processed' });
    expect(created.expires_at! - created.created_at).toBe(2_592_000);
    expect(await client.files.retrieve(created.id)).toEqual(created);
    expect((await client.files.waitForProcessing(created.id)).id).toBe(created.id);
    expect(await (await client.files.content(created.id)).text()).toBe(LINE);
    names.push(created.filename);
  }
  expect(names).toEqual(['größe "x".jsonl', 'web.jsonl', 'stream.jsonl']);
});

it('the client sets the lifetime of a file', async () => {
  const file = await client.files.create({
    file: new File([LINE], 'in.jsonl'),
    purpose: 'batch',
    expires_after: { anchor: 'created_at', seconds: 3600 },
  });
  expect(file.expires_at! - file.created_at).toBe(3600);
});

it('the client pages through files, each once, also while it deletes them', async () => {
  const made = new Set<string>();
  for (let i = 0; i < 5; i++) made.add((await uploadLine(`page-${i}.jsonl`)).id);
  const seen: string[] = [];
  for await (const file of client.files.list({ limit: 2, purpose: 'batch' })) {
    if (!file.filename.startsWith('page-')) continue;
    seen.push(file.id);
    expect((await client.files.delete(file.id)).deleted).toBe(true);
  }
  expect(seen.length).toBe(5);
  expect(new Set(seen)).toEqual(made);
});

it('the client throws NotFoundError for a deleted file', async () => {
  const { id } = await uploadLine();
  await client.files.delete(id);
  for (const call of [
    () => client.files.retrieve(id),
    () => client.files.content(id),
    () => client.files.delete(id),
  ]) {
    const error = await call().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ param: 'id', requestID: expect.any(String) });
  }
});

it('the client creates, reads, lists and cancels batches', async () => {
  const batch = await createBatch();
  expect(batch.status).toBe('validating');
  expect(batch.expires_at! - batch.created_at).toBe(86_400);
  const { data, request_id } = await client.batches.retrieve(batch.id).withResponse();
  expect(data).toEqual(batch);
  expect(request_id).toMatch(/^req_/);
  await createBatch();
  await createBatch();
  const ids: string[] = [];
  for await (const { id } of client.batches.list({ limit: 2 })) ids.push(id);
  expect(ids).toContain(batch.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect((await client.batches.list({ limit: 0 })).data).toEqual([]);
  await expect(client.batches.list({ limit: 101 })).rejects.toBeInstanceOf(BadRequestError);
  expect((await client.batches.cancel(batch.id)).status).toBe('cancelling');
  expect((await client.batches.cancel(batch.id)).status).toBe('cancelling');
});

it('the client does not repeat a cancel that is answered with 409', async () => {
  const { id } = await createBatch();
  await api.database.pool.query(`update batches set status = 'completed' where id = $1`, [id]);
  const before = requests;
  await expect(client.batches.cancel(id)).rejects.toBeInstanceOf(ConflictError);
  expect(requests - before).toBe(1);
});
