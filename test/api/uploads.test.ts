import { createHash } from 'node:crypto';
import {
  BOUNDARY,
  formBytes,
  LINE,
  openTestApi,
  post,
  type TestApi,
  uploadPart,
} from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(
  async () => (api = await openTestApi({ deps: { maxPartBytes: 1_000 } })),
  POSTGRES_START_MS,
);
afterAll(() => api.close());
beforeEach(() => (api.clock.nowMs = 1_700_000_000_000));

const FIELDS = { filename: 'in.jsonl', purpose: 'batch', mime_type: 'application/jsonl' };

async function open(fields: Record<string, unknown>): Promise<string> {
  const answer = await api.call(post('/v1/uploads', { ...FIELDS, ...fields }));
  expect(answer.status).toBe(200);
  return answer.body.id;
}

const sendPart = (id: string, value: string | Buffer, headers: Record<string, string> = {}) =>
  api.call(uploadPart(id, value, headers));
const complete = (id: string, body: unknown) => api.call(post(`/v1/uploads/${id}/complete`, body));
const cancel = (id: string) => api.call(post(`/v1/uploads/${id}/cancel`, {}));
const md5 = (text: string) => createHash('md5').update(text).digest('hex');
const objects = async (prefix: string) =>
  (await api.keys()).filter((key) => key.startsWith(prefix));

describe('an upload', () => {
  it('joins parts in the order of part_ids, not of their arrival', async () => {
    const id = await open({ bytes: LINE.length });
    const pieces = [LINE.slice(0, 10), LINE.slice(10, 40), LINE.slice(40)];
    const parts = await Promise.all([...pieces].reverse().map((piece) => sendPart(id, piece)));
    for (const part of parts) {
      expect(part.status).toBe(200);
      expect(part.body).toEqual({
        id: expect.stringMatching(/^part_[0-9a-f]{32}$/),
        object: 'upload.part',
        created_at: 1_700_000_000,
        upload_id: id,
      });
    }
    const ids = parts.map((part) => part.body.id).reverse();
    const done = await complete(id, { part_ids: ids, md5: md5(LINE).toUpperCase() });
    expect(done.body).toMatchObject({
      id,
      object: 'upload',
      status: 'completed',
      bytes: LINE.length,
      expires_at: 1_700_003_600,
      file: {
        bytes: LINE.length,
        filename: 'in.jsonl',
        purpose: 'batch',
        status: 'processed',
        expires_at: 1_700_000_000 + 2_592_000,
      },
    });
    const { id: fileId } = done.body.file;
    const content = await api.call({ method: 'GET', url: `/v1/files/${fileId}/content` });
    expect(content.bytes.toString()).toBe(LINE);
    expect(await objects(`uploads/${id}/`)).toEqual([]);
  });

  it('answers a repeated completion with the same object, and refuses a different one', async () => {
    const id = await open({ bytes: LINE.length });
    const part = (await sendPart(id, LINE)).body.id;
    const both = await Promise.all([
      complete(id, { part_ids: [part] }),
      complete(id, { part_ids: [part] }),
    ]);
    const again = await complete(id, { part_ids: [part] });
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both[1]?.body).toEqual(both[0]?.body);
    expect(again.body).toEqual(both[0]?.body);
    await api.call({ method: 'DELETE', url: `/v1/files/${again.body.file.id}` });
    expect((await complete(id, { part_ids: [part] })).body).toEqual(again.body);
    expect((await complete(id, { part_ids: [] })).status).toBe(400);
    expect((await cancel(id)).status).toBe(400);
    expect((await sendPart(id, LINE)).status).toBe(400);
    expect(await objects(`uploads/${id}/`)).toEqual([]);
  });

  it('counts a given lifetime from its own creation', async () => {
    const expires_after = { anchor: 'created_at', seconds: 3_600 };
    const id = await open({ bytes: LINE.length, expires_after });
    api.clock.nowMs += 600_000;
    const part = (await sendPart(id, LINE)).body.id;
    const { file } = (await complete(id, { part_ids: [part] })).body;
    expect(file).toMatchObject({ created_at: 1_700_000_600, expires_at: 1_700_003_600 });
  });

  it.each([
    [{ filename: null }, 'missing_required_parameter', 'filename'],
    [{ purpose: undefined }, 'missing_required_parameter', 'purpose'],
    [{ purpose: 'poems' }, 'invalid_value', 'purpose'],
    [{ bytes: undefined }, 'missing_required_parameter', 'bytes'],
    [{ bytes: '7' }, 'invalid_type', 'bytes'],
    [{ bytes: 0 }, 'integer_below_min_value', 'bytes'],
    [{ bytes: 8 * 1024 ** 3 + 1 }, 'integer_above_max_value', 'bytes'],
    [{ mime_type: undefined }, 'missing_required_parameter', 'mime_type'],
    [
      { expires_after: { anchor: 'created_at', seconds: 10 } },
      'integer_below_min_value',
      'expires_after.seconds',
    ],
    [{ expires_after: { anchor: 'now', seconds: 3_600 } }, 'invalid_value', 'expires_after.anchor'],
    [{ colour: 'red' }, 'unknown_parameter', 'colour'],
  ])('is refused with %j', async (fields, code, param) => {
    const answer = await api.call(post('/v1/uploads', { ...FIELDS, bytes: 10, ...fields }));
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ code, param, type: 'invalid_request_error' });
  });

  it('is created from JSON of any content type', async () => {
    const request = post('/v1/uploads', { ...FIELDS, bytes: 8 * 1024 ** 3 });
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: 'Bearer unused',
    };
    expect((await api.call({ ...request, headers })).body).toMatchObject({
      status: 'pending',
      file: null,
    });
  });
});

it('stores a name as it answers it, even with a lone surrogate', async () => {
  const asked = post('/v1/uploads', {
    ...FIELDS,
    bytes: LINE.length,
    filename: 'half \ud83d.jsonl',
  });
  const opened = (await api.call(asked)).body;
  const part = (await sendPart(opened.id, LINE)).body.id;
  const done = (await complete(opened.id, { part_ids: [part] })).body;
  expect(done.filename).toBe(opened.filename);
  expect(done.file.filename).toBe(opened.filename);
});

describe('a part of an upload', () => {
  it('that would exceed the declared size is refused and leaves nothing', async () => {
    const id = await open({ bytes: 10 });
    expect((await sendPart(id, '12345678')).status).toBe(200);
    for (const retries of ['0', '1']) {
      const answer = await sendPart(id, 'abc', { 'x-stainless-retry-count': retries });
      expect(answer.status).toBe(400);
      expect(answer.body.error.param).toBe('data');
    }
    expect(await objects(`uploads/${id}/`)).toHaveLength(1);
  });

  // Requests that reach the API, with retries in capitals, and the indexes of answers that reach the client.
  it.each([
    ['the first answer is lost', 'aaa AAA bbb ccc', [1, 2, 3]],
    ['every answer is lost', 'aaa AAA bbb BBB ccc CCC', [1, 3, 5]],
    ['the last answer is lost, again and again', 'aaa bbb BBB BBB BBB BBB', [0, 5]],
    ['the second request is lost, and the parts are alike', 'aaa AAA', [0, 1]],
    ['a first attempt comes in behind its retry', 'AAA aaa bbb', [0, 2]],
  ])('that is sent again does not count twice if %s', async (_what, sent, used) => {
    const id = await open({ bytes: 3 * used.length, purpose: 'user_data' });
    const attempts = sent.split(' ');
    const parts: string[] = [];
    for (const attempt of attempts) {
      const retries = attempt === attempt.toUpperCase() ? '1' : '0';
      const headers = { 'x-stainless-retry-count': retries };
      const answer = await sendPart(id, attempt.toLowerCase(), headers);
      expect(answer.status).toBe(200);
      parts.push(answer.body.id);
    }
    expect((await objects(`uploads/${id}/`)).length).toBeLessThanOrEqual(2 * used.length);
    const done = await complete(id, { part_ids: used.map((i) => parts[i]) });
    const content = await api.call({
      method: 'GET',
      url: `/v1/files/${done.body.file.id}/content`,
    });
    expect(content.bytes.toString()).toBe(
      used
        .map((i) => attempts[i])
        .join('')
        .toLowerCase(),
    );
  });

  it('is at most as long as a part may be', async () => {
    const id = await open({ bytes: 5_000 });
    expect((await sendPart(id, Buffer.alloc(1_000))).status).toBe(200);
    const answer = await sendPart(id, Buffer.alloc(1_001));
    expect(answer.status).toBe(400);
    expect(await objects(`uploads/${id}/`)).toHaveLength(1);
  });

  it('and its simultaneous siblings never exceed the declared size', async () => {
    const id = await open({ bytes: 30 });
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => sendPart(id, String(i).repeat(10))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(await objects(`uploads/${id}/`)).toHaveLength(3);
  });

  it.each([
    ['no data', [{ name: 'other', value: 'x' }]],
    ['data that is no file', [{ name: 'data', value: 'x' }]],
    ['two files', [1, 2].map(() => ({ name: 'data', value: 'x', filename: 'a' }))],
    [
      'an unknown field',
      [
        { name: 'data', value: 'x', filename: 'a' },
        { name: 'purpose', value: 'batch' },
      ],
    ],
  ])('with %s is refused and leaves nothing', async (_what, form) => {
    const id = await open({ bytes: 10 });
    const answer = await api.call({
      method: 'POST',
      url: `/v1/uploads/${id}/parts`,
      headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      payload: formBytes(form),
    });
    expect(answer.status).toBe(400);
    expect(await objects(`uploads/${id}/`)).toEqual([]);
  });
});

describe('a completion', () => {
  it('needs parts of this upload, each once, with the declared bytes in all', async () => {
    const id = await open({ bytes: 4 });
    const foreign = (await sendPart(await open({ bytes: 4 }), 'abcd')).body.id;
    const half = (await sendPart(id, '{}')).body.id;
    for (const part_ids of [[foreign], ['part_none'], [half], [half, half], []]) {
      const answer = await complete(id, { part_ids });
      expect(answer.status).toBe(400);
      expect(answer.body.error.param).toBe('part_ids');
    }
    expect((await complete(id, {})).body.error.code).toBe('missing_required_parameter');
    expect((await complete(id, { part_ids: 'x' })).body.error.code).toBe('invalid_type');
    const rest = (await sendPart(id, '\n\n')).body.id;
    expect((await complete(id, { part_ids: [half, rest] })).body.status).toBe('completed');
  });

  it('with a wrong md5 leaves the upload pending', async () => {
    const id = await open({ bytes: LINE.length });
    const part = (await sendPart(id, LINE)).body.id;
    const before = await objects('files/');
    const bad = await complete(id, { part_ids: [part], md5: md5('other') });
    expect(bad.status).toBe(400);
    expect(bad.body.error.param).toBe('md5');
    expect((await complete(id, { part_ids: [part], md5: 'nonsense' })).status).toBe(400);
    expect(await objects('files/')).toEqual(before);
    expect((await complete(id, { part_ids: [part], md5: md5(LINE) })).status).toBe(200);
  });

  it.each([
    ['text', 'hello world', 'jsonl'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0x7d, 0x0a, 0xff]), 'utf-8'],
    ['blank lines', '\n\n\n', 'jsonl'],
  ])('refuses %s as a file for batches', async (_what, content, word) => {
    const id = await open({ bytes: content.length });
    const part = (await sendPart(id, content)).body.id;
    const before = await objects('files/');
    const answer = await complete(id, { part_ids: [part] });
    expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', param: null });
    expect(answer.body.error.message).toContain(word);
    expect(await objects('files/')).toEqual(before);
  });

  it('accepts any bytes for another purpose', async () => {
    const id = await open({ bytes: 2, purpose: 'user_data', filename: '../x/ä.bin' });
    const part = (await sendPart(id, Buffer.from([0xff, 0]))).body.id;
    const { file } = (await complete(id, { part_ids: [part] })).body;
    expect(file).toMatchObject({ filename: 'ä.bin', purpose: 'user_data', expires_at: null });
  });

  it('whose part is damaged answers 500 and makes no file', async () => {
    const id = await open({ bytes: 3 });
    const part = (await sendPart(id, '{} ')).body.id;
    await api.store.delete(`uploads/${id}/${part}`);
    await api.store.putIfAbsent(`uploads/${id}/${part}`, Buffer.from('{}'));
    expect((await complete(id, { part_ids: [part] })).status).toBe(500);
    const rows = await api.database.pool.query('select 1 from files where bytes = 3');
    expect(rows.rows).toEqual([]);
  });
});

describe('the end of an upload', () => {
  it('happens once, even if a completion and a cancel race', async () => {
    for (let round = 0; round < 15; round++) {
      const id = await open({ bytes: 300, purpose: 'user_data' });
      const parts = await Promise.all(
        ['a', 'b', 'c'].map((piece) => sendPart(id, piece.repeat(100))),
      );
      const part_ids = parts.map(({ body }) => body.id);
      const [completed, cancelled] = await Promise.all([complete(id, { part_ids }), cancel(id)]);
      expect([completed.status, cancelled.status].sort()).toEqual([200, 400]);
      expect(await objects(`uploads/${id}/`)).toEqual([]);
    }
    const { rows } = await api.database.pool.query<{ key: string }>(
      'select object_key as key from files',
    );
    expect(await objects('files/')).toEqual(rows.map(({ key }) => key).sort());
  });

  it('by a cancel removes its parts, and the cancel can be repeated', async () => {
    const id = await open({ bytes: 10 });
    const part = (await sendPart(id, 'abc')).body.id;
    const answers = [await cancel(id), await cancel(id)];
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ id, status: 'cancelled', file: null });
    }
    expect(await objects(`uploads/${id}/`)).toEqual([]);
    expect((await sendPart(id, 'abc')).status).toBe(400);
    expect((await complete(id, { part_ids: [part] })).status).toBe(400);
  });

  it('comes after an hour', async () => {
    const id = await open({ bytes: 2 });
    const part = (await sendPart(id, '{}')).body.id;
    api.clock.nowMs += 3_600_000;
    for (const answer of [
      await sendPart(id, 'a'),
      await complete(id, { part_ids: [part] }),
      await cancel(id),
    ]) {
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: null });
      expect(answer.body.error.message).toContain('expired');
    }
  });

  it('is a 404 for an unknown upload, and for one of another tenant', async () => {
    const other = await openTestApi({ auth: { mode: 'header', require_tenant: false } });
    const ann = { 'x-maas-username': 'ann' };
    const { id } = (await other.call(post('/v1/uploads', { ...FIELDS, bytes: 2 }, ann))).body;
    for (const headers of [{}, { 'x-maas-username': 'bob' }]) {
      for (const url of ['complete', 'cancel'].map((verb) => `/v1/uploads/${id}/${verb}`)) {
        const answer = await other.call(post(url, { part_ids: [] }, headers));
        expect(answer.status).toBe(404);
      }
    }
    await other.close();
    expect((await sendPart('upload_none', 'x')).status).toBe(404);
    expect((await cancel('upload%00')).status).toBe(404);
  });
});
