import {
  BOUNDARY,
  batchForm,
  formBytes,
  openTestApi,
  post,
  type TestApi,
  upload,
} from '../support/api';
import { createBatchRepository } from '../../storage/postgres/batches/repository';
import { createFileRepository } from '../../storage/postgres/files';
import { openPool } from '../../storage/postgres/pool';
import { POSTGRES_START_MS } from '../support/postgres';

let api: TestApi;
beforeAll(async () => (api = await openTestApi()), POSTGRES_START_MS);
afterAll(() => api.close());

const ENVELOPE = {
  error: {
    message: expect.any(String),
    type: 'invalid_request_error',
    param: null,
    code: null,
  },
};

describe('every answer', () => {
  it.each([
    ['GET', '/v1/files', 200],
    ['GET', '/v1/files/file-none', 404],
    ['GET', '/nowhere', 404],
    ['PUT', '/v1/files', 405],
    ['GET', '/v1/files/%', 400],
    ['GET', '/health', 200],
  ] as const)('has the common headers: %s %s', async (method, url, status) => {
    const answer = await api.call({ method, url });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^req_[0-9a-f]{32}$/),
      'openai-version': '2020-10-01',
      'openai-organization': 'default',
      'openai-processing-ms': expect.stringMatching(/^\d+$/),
      'x-content-type-options': 'nosniff',
      'content-type': expect.stringMatching(/^application\/json/),
    });
  });

  it('has the common headers on a download, too', async () => {
    const { id } = (await api.call(upload(batchForm()))).body;
    const answer = await api.call({ method: 'GET', url: `/v1/files/${id}/content` });
    expect(answer.headers).toMatchObject({
      'x-request-id': expect.any(String),
      'openai-processing-ms': expect.any(String),
    });
  });

  it("has the client's request id if that is safe to log, else a new one", async () => {
    const ask = async (id: string) =>
      (await api.call({ method: 'GET', url: '/v1/files', headers: { 'x-request-id': id } }))
        .headers['x-request-id'];
    expect(await ask('my-id.1')).toBe('my-id.1');
    expect(await ask('bad id <x>')).toMatch(/^req_/);
    expect(await ask('x'.repeat(200))).toMatch(/^req_/);
  });
});

describe('the check of a request', () => {
  it('names method and path if there is no such route', async () => {
    const answer = await api.call({ method: 'POST', url: '/v1/nothing?x=1' });
    expect(answer.status).toBe(404);
    expect(answer.body).toEqual(ENVELOPE);
    expect(answer.body.error.message).toBe('Invalid URL (POST /v1/nothing)');
  });

  it.each([
    ['PUT', '/v1/files', 'POST, GET, HEAD'],
    ['POST', '/v1/files/file-a', 'GET, HEAD, DELETE'],
    ['DELETE', '/v1/batches/batch_a', 'GET, HEAD'],
    ['GET', '/v1/batches/batch_a/cancel', 'POST'],
    ['PATCH', '/v1/files/file-a/content', 'GET, HEAD'],
    ['POST', '/health', 'GET, HEAD'],
  ] as const)('answers 405 with the allowed methods: %s %s', async (method, url, allow) => {
    const headers = { 'content-type': 'application/json' };
    const payload = method === 'GET' ? undefined : '{broken';
    const answer = await api.call({ method, url, headers, ...(payload ? { payload } : {}) });
    expect(answer.status).toBe(405);
    expect(answer.headers['allow']?.split(', ').sort()).toEqual(allow.split(', ').sort());
    expect(answer.body).toEqual(ENVELOPE);
  });

  it.each(['{broken', '{"a":1}x', '"text', '\u0000'])(
    'answers 400 to the body %j',
    async (payload) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload });
      expect(answer.status).toBe(400);
      expect(answer.body).toEqual(ENVELOPE);
    },
  );

  it.each(['[]', '"text"', '7', 'null'])('answers 400 to the JSON %s', async (payload) => {
    const headers = { 'content-type': 'application/json' };
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload, headers });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual(ENVELOPE);
  });

  it('answers 413 to more than 1 MiB of JSON, and accepts a bit less', async () => {
    const body = (length: number) => post('/v1/batches', { x: 'a'.repeat(length) });
    const large = await api.call(body(1024 * 1024));
    expect(large.status).toBe(413);
    expect(large.body).toEqual(ENVELOPE);
    expect((await api.call(body(1024 * 1024 - 100))).body.error.param).toBe('input_file_id');
  });

  it.each([
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/x-www-form-urlencoded',
    'text/plain',
    'nonsense',
    ';',
    '',
    undefined,
  ])('accepts JSON of any content type with a key: %s', async (type) => {
    const headers = {
      authorization: 'Bearer unused',
      ...(type === undefined ? {} : { 'content-type': type }),
    };
    const payload = JSON.stringify({ input_file_id: 'file-x', __proto: 1, endpoint: 'x' });
    const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload });
    expect(answer.body.error).toMatchObject({ param: 'endpoint' });
  });

  it.each([
    'application/x-www-form-urlencoded',
    'text/plain',
    'text/plain; application/json',
    'application/jsonx',
    ';',
    undefined,
  ])('refuses JSON of another content type without a key: %s', async (type) => {
    const payload = JSON.stringify({ input_file_id: 'file-x', endpoint: 'x' });
    for (const authorization of [undefined, 'Basic dXNlcjpwYXNz']) {
      const headers = {
        ...(authorization === undefined ? {} : { authorization }),
        ...(type === undefined ? {} : { 'content-type': type }),
      };
      const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload });
      expect(answer.status).toBe(415);
      expect(answer.body).toEqual(ENVELOPE);
      expect(answer.body.error.message).toContain('application/json');
    }
  });

  it('accepts any content type if there is no body', async () => {
    for (const type of [undefined, 'text/plain', 'application/json']) {
      const headers = type === undefined ? {} : { 'content-type': type };
      const url = `/v1/batches/batch_${'0'.repeat(32)}/cancel`;
      expect((await api.call({ method: 'POST', url, headers })).status).toBe(404);
    }
  });

  it.each([
    ['/v1/batches', 'application/json', '{}'],
    ['/v1/files', `multipart/form-data; boundary=${BOUNDARY}`, formBytes(batchForm())],
  ])('answers 415 to a compressed body: %s', async (url, type, payload) => {
    for (const coding of ['gzip', 'identity, br']) {
      const headers = { 'content-type': type, 'content-encoding': coding };
      const answer = await api.call({ method: 'POST', url, headers, payload });
      expect(answer.status).toBe(415);
      expect(answer.body).toEqual(ENVELOPE);
    }
  });

  it('refuses JSON that is not UTF-8', async () => {
    const payload = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual(ENVELOPE);
  });

  it('refuses JSON under the content type of a form', async () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload: '{}' });
    expect(answer.status).toBe(400);
  });

  it('names the first missing field if the body is empty', async () => {
    const headers = { 'content-type': 'application/json' };
    const answer = await api.call({ method: 'POST', url: '/v1/batches', headers, payload: '' });
    expect(answer.body.error).toMatchObject({ code: 'missing_required_parameter' });
  });

  it('takes no fields from __proto__', async () => {
    const payload = '{"__proto__":{"input_file_id":"file-a"}}';
    const answer = await api.call({ method: 'POST', url: '/v1/batches', payload });
    expect(answer.body.error).toMatchObject({ param: 'input_file_id' });
  });
});

it('ignores a slash at the end of a path', async () => {
  expect((await api.call({ method: 'GET', url: '/v1/files/' })).status).toBe(200);
  expect((await api.call({ method: 'GET', url: '/v1/batches/' })).status).toBe(200);
});

it('answers HEAD like GET, without a body', async () => {
  const answer = await api.call({ method: 'HEAD', url: '/v1/files' });
  expect(answer.status).toBe(200);
  expect(answer.bytes.length).toBe(0);
});

it('reveals nothing internal when a handler crashes', async () => {
  const broken = await openTestApi({
    deps: {
      files: {
        get: () => Promise.reject(new Error('secret')),
        list: () => Promise.reject(new TypeError('secret')),
        insert: () => Promise.reject(new Error('secret')),
        admit: () => Promise.reject(new Error('secret')),
        insertOnce: () => Promise.reject(new Error('secret')),
        hide: () => Promise.reject(new Error('secret')),
      },
    },
  });
  try {
    const answer = await broken.call({ method: 'GET', url: '/v1/files' });
    expect(answer.status).toBe(500);
    expect(answer.body).toEqual({
      error: {
        message: 'The server had an error while processing your request. Please try again.',
        type: 'server_error',
        param: null,
        code: null,
      },
    });
    expect((await broken.call(upload(batchForm()))).status).toBe(500);
    expect(await broken.keys()).toEqual([]);
  } finally {
    await broken.close();
  }
});

it('answers 503 with Retry-After while PostgreSQL is down', async () => {
  const unreachable = openPool('postgres://postgres@127.0.0.1:1/none');
  const lost = await openTestApi({
    deps: {
      files: createFileRepository(unreachable),
      batches: createBatchRepository(unreachable),
      checks: { postgres: async () => void (await unreachable.query('select 1')) },
    },
  });
  try {
    const answers = [
      await lost.call({ method: 'GET', url: '/v1/files' }),
      await lost.call(post('/v1/batches', { input_file_id: 'file-a' })),
      await lost.call(upload(batchForm())),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(503);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(answer.body.error).toMatchObject({ type: 'server_error', code: null, param: null });
    }
    expect(await lost.keys()).toEqual([]);
    expect((await lost.call({ method: 'GET', url: '/ready' })).body).toEqual({
      status: 'not_ready',
      checks: { postgres: false },
    });
    expect((await lost.call({ method: 'GET', url: '/health' })).status).toBe(200);
  } finally {
    await lost.close();
    await unreachable.end();
  }
});
