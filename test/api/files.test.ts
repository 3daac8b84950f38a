import { batchForm, LINE, openTestApi, type TestApi, type TestPart, upload } from '../support/api';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ deps: { maxUploadBytes: 2_000_000 } });
}, POSTGRES_START_MS);
afterAll(() => api.close());

const NOW_SEC = 1_700_000_000;
const get = (url: string, headers: Record<string, string> = {}) =>
  api.call({ method: 'GET', url, headers });
const remove = (url: string) => api.call({ method: 'DELETE', url });
const create = async (parts: TestPart[] = batchForm()) => (await api.call(upload(parts))).body;

describe('creating a file', () => {
  it('answers the same File as a later retrieve: processed, expiring after 30 days', async () => {
    const answer = await api.call(upload(batchForm()));
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^file-[A-Za-z0-9]{22}$/),
      object: 'file',
      bytes: Buffer.byteLength(LINE),
      created_at: NOW_SEC,
      expires_at: NOW_SEC + 2_592_000,
      filename: 'in.jsonl',
      purpose: 'batch',
      status: 'processed',
      status_details: null,
    });
    expect((await get(`/v1/files/${answer.body.id}`)).body).toEqual(answer.body);
  });

  it.each([
    ['file first', ['file', 'purpose', 'anchor', 'seconds']],
    ['file last', ['purpose', 'anchor', 'seconds', 'file']],
    ['file between', ['anchor', 'file', 'seconds', 'purpose']],
  ])('accepts the fields in any order: %s', async (_name, order) => {
    const parts: Record<string, TestPart> = {
      file: { name: 'file', value: LINE, filename: 'in.jsonl' },
      purpose: { name: 'purpose', value: 'batch' },
      anchor: { name: 'expires_after[anchor]', value: 'created_at' },
      seconds: { name: 'expires_after[seconds]', value: '3600' },
    };
    const file = await create(order.map((name) => parts[name]!));
    expect(file).toMatchObject({ expires_at: NOW_SEC + 3600, bytes: LINE.length });
    expect((await get(`/v1/files/${file.id}/content`)).bytes.toString()).toBe(LINE);
  });

  it('never expires a file of another purpose', async () => {
    const file = await create([
      { name: 'file', value: 'anything', filename: 'a.txt' },
      { name: 'purpose', value: 'user_data' },
    ]);
    expect(file).toMatchObject({ expires_at: null, purpose: 'user_data' });
  });

  it.each([
    ['notes/in.jsonl', 'in.jsonl'],
    ['C:\\data\\in.jsonl', 'in.jsonl'],
    ['say %22hi%22 größe 日本.jsonl', 'say "hi" größe 日本.jsonl'],
    ['upload', 'upload'],
    ['', 'upload'],
    ['../..', '..'],
  ])('keeps the base name of %j', async (sent, kept) => {
    expect((await create(batchForm(LINE, sent))).filename).toBe(kept);
  });

  it('accepts a byte order mark, blank lines, CRLF, and damaged later lines', async () => {
    for (const content of [`\ufeff${LINE}`, `\n \r\n${LINE}`, `${LINE.trim()}\r\nbroken\n`]) {
      expect(await create(batchForm(content))).toMatchObject({ object: 'file' });
    }
  });

  it.each([
    ['an empty file', batchForm(''), null, null, /\.jsonl/],
    ['nothing but blanks', batchForm('\n \n'), null, null, /\.jsonl/],
    ['text', batchForm('hello\n'), null, null, /\.jsonl/],
    ['an array', batchForm('[1]\n'), null, null, /\.jsonl/],
    ['a pretty-printed object', batchForm('{\n "a": 1\n}\n'), null, null, /\.jsonl/],
    ['a .txt name', batchForm(LINE, 'in.txt'), null, null, /\.jsonl/],
    [
      'a later line that is not utf-8',
      batchForm(Buffer.concat([Buffer.from(LINE), Buffer.from([0xc3])])),
      null,
      null,
      /utf-8/,
    ],
    [
      'no file',
      [{ name: 'purpose', value: 'batch' }],
      'file',
      'missing_required_parameter',
      /file/,
    ],
    [
      'a field in place of the file',
      [
        { name: 'file', value: LINE },
        { name: 'purpose', value: 'batch' },
      ],
      'file',
      'invalid_type',
      /file/,
    ],
    ['no purpose', batchForm().slice(1), 'purpose', 'missing_required_parameter', /purpose/],
    [
      'an unknown purpose',
      [{ name: 'purpose', value: 'fun' }, batchForm()[1]!],
      'purpose',
      'invalid_value',
      /purpose/,
    ],
    [
      'an unknown field',
      [...batchForm(), { name: 'extra', value: '1' }],
      'extra',
      'unknown_parameter',
      /extra/,
    ],
    [
      'seconds without anchor',
      [...batchForm(), { name: 'expires_after[seconds]', value: '3600' }],
      'expires_after[anchor]',
      'missing_required_parameter',
      /anchor/,
    ],
    [
      'an anchor without seconds',
      [...batchForm(), { name: 'expires_after[anchor]', value: 'created_at' }],
      'expires_after[seconds]',
      'missing_required_parameter',
      /seconds/,
    ],
    [
      'two purposes',
      [{ name: 'purpose', value: 'user_data' }, ...batchForm()],
      'purpose',
      'invalid_type',
      /single/,
    ],
    [
      'a purpose that is a file',
      [{ name: 'purpose', value: 'batch', filename: 'p' }, batchForm()[1]!],
      'purpose',
      'invalid_type',
      /text/,
    ],
    ['a file too many', [...batchForm(), batchForm()[1]!], 'file', null, /more than one/],
    ['a file too long', batchForm(Buffer.alloc(2_000_001, 0x20)), null, null, /larger/],
  ] as [string, TestPart[], string | null, string | null, RegExp][])(
    'refuses %s and keeps nothing',
    async (_name, parts, param, code, message) => {
      const before = await api.keys();
      const answer = await api.call(upload(parts));
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual({
        error: {
          message: expect.stringMatching(message),
          type: 'invalid_request_error',
          param,
          code,
        },
      });
      expect(await api.keys()).toEqual(before);
    },
  );

  it.each([
    ['3599', 'integer_below_min_value'],
    ['2592001', 'integer_above_max_value'],
    ['1e5', 'invalid_type'],
    ['3600.0', 'invalid_type'],
    [' 3600', 'invalid_type'],
    ['9'.repeat(30), 'integer_above_max_value'],
    [`-${'9'.repeat(30)}`, 'integer_below_min_value'],
  ])('refuses an expiry of %s seconds', async (seconds, code) => {
    const answer = await api.call(
      upload([
        ...batchForm(),
        { name: 'expires_after[anchor]', value: 'created_at' },
        { name: 'expires_after[seconds]', value: seconds },
      ]),
    );
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ code, param: 'expires_after[seconds]' });
  });

  it('refuses a body that is not a form', async () => {
    const payload = LINE;
    for (const type of ['application/json', 'text/plain', 'multipart/form-data']) {
      const headers = { 'content-type': type };
      const answer = await api.call({ method: 'POST', url: '/v1/files', headers, payload });
      expect(answer.status).toBe(400);
      expect(answer.body.error.type).toBe('invalid_request_error');
    }
  });

  it('refuses a declared length over the limit before it reads the body', async () => {
    const answer = await api.call(upload(batchForm(), { 'content-length': '99000000' }));
    expect(answer.status).toBe(413);
    expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: null });
  });
});

describe('downloading a file', () => {
  const text = Array.from({ length: 100 }, (_, i) => JSON.stringify({ i })).join('\n');
  let url: string;
  beforeAll(async () => {
    url = `/v1/files/${(await create(batchForm(text))).id}/content`;
  });

  it('returns the uploaded bytes with their length and a plain type', async () => {
    const answer = await get(url, { accept: 'application/binary' });
    expect(answer.status).toBe(200);
    expect(answer.bytes.toString()).toBe(text);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': String(text.length),
      'accept-ranges': 'bytes',
    });
  });

  it.each([
    ['bytes=0-9', 0, 10],
    ['bytes=5-', 5, 100000],
    ['bytes=-7', -7, undefined],
    ['bytes=3-99999', 3, undefined],
    [`bytes=3-${'9'.repeat(40)}`, 3, undefined],
    [`bytes=-${'9'.repeat(40)}`, 0, undefined],
    [`bytes=${'0'.repeat(40)}-9`, 0, 10],
  ])('answers the range %s with 206', async (range, start, end) => {
    const answer = await get(url, { range });
    const expected = text.slice(start, end);
    expect(answer.status).toBe(206);
    expect(answer.bytes.toString()).toBe(expected);
    const from = start < 0 ? text.length + start : start;
    expect(answer.headers['content-range']).toBe(
      `bytes ${from}-${from + expected.length - 1}/${text.length}`,
    );
    expect(answer.headers['content-length']).toBe(String(expected.length));
  });

  it.each(['bytes=99999-', 'bytes=-0', `bytes=${'9'.repeat(40)}-`])(
    'answers %s with 416 and the size',
    async (range) => {
      const answer = await get(url, { range });
      expect(answer.status).toBe(416);
      expect(answer.headers['content-range']).toBe(`bytes */${text.length}`);
      expect(answer.body.error).toMatchObject({ type: 'invalid_request_error' });
    },
  );

  it.each(['bytes=0-1,3-4', 'bytes=9-1', 'lines=0-1', 'bytes=-', 'bytes=a-b'])(
    'answers %s in full',
    async (range) => {
      const answer = await get(url, { range });
      expect(answer.status).toBe(200);
      expect(answer.bytes.length).toBe(text.length);
    },
  );

  it('answers HEAD with the headers only', async () => {
    const answer = await api.call({ method: 'HEAD', url });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-length']).toBe(String(text.length));
    expect(answer.bytes.length).toBe(0);
  });

  it('serves an empty file', async () => {
    const file = await create([
      { name: 'file', value: '', filename: 'empty' },
      { name: 'purpose', value: 'user_data' },
    ]);
    const answer = await get(`/v1/files/${file.id}/content`);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-length']).toBe('0');
    const ranged = async (range: string) =>
      (await get(`/v1/files/${file.id}/content`, { range })).status;
    expect(await ranged('bytes=0-0')).toBe(416);
    expect(await ranged('bytes=-5')).toBe(200);
  });

  it.each([
    ['is gone', async (key: string) => api.store.delete(key)],
    [
      'is not whole',
      async (key: string) => {
        await api.store.delete(key);
        await api.store.putIfAbsent(key, Buffer.from('{'));
      },
    ],
  ])('answers 500 in the error envelope if the object %s', async (_name, damage) => {
    const file = await create();
    for (const key of await api.keys()) if (key.endsWith(file.id)) await damage(key);
    const answer = await get(`/v1/files/${file.id}/content`);
    expect(answer.status).toBe(500);
    expect(answer.body.error).toMatchObject({ type: 'server_error', code: null, param: null });
    expect(JSON.stringify(answer.body)).not.toContain(file.id);
    expect(answer.headers['content-disposition']).toBeUndefined();
  });
});

describe('deleting a file', () => {
  it('hides the file everywhere at once, and succeeds once', async () => {
    const { id } = await create();
    expect((await remove(`/v1/files/${id}`)).body).toEqual({ id, object: 'file', deleted: true });
    for (const answer of [
      await get(`/v1/files/${id}`),
      await get(`/v1/files/${id}/content`),
      await remove(`/v1/files/${id}`),
    ]) {
      expect(answer.status).toBe(404);
      expect(answer.body.error).toEqual({
        message: `No such File object: ${id}`,
        type: 'invalid_request_error',
        param: 'id',
        code: null,
      });
    }
  });

  it('accepts a JSON content type without a body, as SDKs send it', async () => {
    const { id } = await create();
    const headers = { 'content-type': 'application/json', 'content-length': '0' };
    const answer = await api.call({ method: 'DELETE', url: `/v1/files/${id}`, headers });
    expect(answer.status).toBe(200);
  });
});

it('hides a file everywhere when it expires', async () => {
  const form = [
    ...batchForm(),
    { name: 'expires_after[anchor]', value: 'created_at' },
    { name: 'expires_after[seconds]', value: '3600' },
  ];
  const { id } = await create(form);
  api.clock.nowMs += 3_600_000;
  try {
    expect((await get(`/v1/files/${id}`)).status).toBe(404);
    expect((await get(`/v1/files/${id}/content`)).status).toBe(404);
    expect((await remove(`/v1/files/${id}`)).status).toBe(404);
    const { data } = (await get('/v1/files')).body as { data: { id: string }[] };
    expect(data.map((file) => file.id)).not.toContain(id);
  } finally {
    api.clock.nowMs -= 3_600_000;
  }
});

it.each([
  ['no file has', 'file-none'],
  ['is no id', 'nonsense'],
  ['holds a NUL', 'a%00b'],
  ['is encoded', encodeURIComponent('ü/ä')],
  ['is as long as a URL may be', `file-${'a'.repeat(8_000)}`],
])('answers 404 for an id that %s', async (_what, id) => {
  expect((await get(`/v1/files/${id}`)).status).toBe(404);
  expect((await remove(`/v1/files/${id}`)).status).toBe(404);
});
