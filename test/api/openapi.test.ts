import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { InjectOptions } from 'fastify';
import { openApiDocument } from '../../api/openapi/document';
import { operations } from '../../api/openapi/operations';
import { configSchema } from '../../platform/config-schema';
import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import { undocumented } from '../support/documented';
import { POSTGRES_START_MS } from '../support/postgres';

// Every test of the API compares its requests and answers with the document: see `call` in support/api.

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the test reads any member
let document: any;
let api: TestApi;
/** An API without authentication, which would refuse requests before they are checked. */
let open: TestApi;
beforeAll(async () => {
  api = await openTestApi({ auth: { mode: 'api_key' } });
  open = await openTestApi();
  document = (await api.call({ method: 'GET', url: '/openapi.json' })).body;
}, POSTGRES_START_MS);
afterAll(async () => {
  await open.close();
  await api.close();
});

it('the document is served without a key', () => {
  expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Nightshift' } });
});

it('the document is valid OpenAPI 3.1', () => {
  const script = path.join(__dirname, '..', 'support', 'validate-openapi.mjs');
  const judge = (text: string): unknown[] =>
    JSON.parse(execFileSync(process.execPath, [script], { input: text }).toString()) as unknown[];
  expect(judge(JSON.stringify(document))).toEqual([]);
  expect(judge(JSON.stringify({ ...document, paths: { files: {} } }))).not.toEqual([]);
}, 30_000);

it.each([
  ['none', {}, undefined, []],
  ['api_key', {}, { type: 'http', scheme: 'bearer' }, [{ caller: [] }]],
  ['header', {}, { type: 'apiKey', in: 'header', name: 'X-MaaS-Username' }, [{ caller: [] }]],
  ['header', { require_tenant: false }, { type: 'apiKey' }, [{ caller: [] }, {}]],
])('the document names the authentication of mode %s %j', (mode, more, scheme, security) => {
  const { auth, batch } = configSchema.parse({ auth: { mode, ...more } });
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the test reads any member
  const made: any = openApiDocument({ auth, endpoints: batch.endpoints });
  expect(made.security).toEqual(security);
  const caller = made.components.securitySchemes?.caller;
  if (scheme === undefined) expect(caller).toBeUndefined();
  else expect(caller).toMatchObject(scheme);
});

it('the document lists the endpoints of the installation', () => {
  const { auth } = configSchema.parse({});
  const { components } = openApiDocument({ auth, endpoints: ['/v1/embeddings'] });
  expect(components).toMatchObject({
    schemas: { CreateBatch: { properties: { endpoint: { enum: ['/v1/embeddings'] } } } },
  });
});

it('the document describes the headers of every answer', async () => {
  const names = Object.keys(document.components.headers);
  for (const { path: url, method } of operations([])) {
    for (const [status, { headers }] of Object.entries<{ headers: object }>(
      document.paths[url][method].responses,
    )) {
      expect([url, status, Object.keys(headers).filter((one) => !names.includes(one))]).toEqual([
        url,
        status,
        [],
      ]);
    }
  }
  const { headers } = await api.call({ method: 'GET', url: '/v1/files' });
  const declared = Object.keys(document.paths['/v1/files'].get.responses[401].headers);
  expect(declared.filter((name) => headers[name] === undefined)).toEqual([]);
});

it('the document describes every route under /v1 and no other', () => {
  const served = routes().filter((path) => path.startsWith('/v1/'));
  expect(Object.keys(document.paths).sort()).toEqual([...new Set(served)].sort());
});

/** Paths of all routes, read from the tree that the framework prints with four columns for each level. */
function routes(): string[] {
  const steps: string[] = [];
  const paths: string[] = [];
  for (const line of api.app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent = '', step = '', methods] = /^(.*?[├└]── )(\S+)( \()?/.exec(line) ?? [];
    if (step === '') continue;
    steps.splice(indent.length / 4 - 1, Infinity, step);
    if (methods !== undefined) paths.push(steps.join('').replace(/:(\w+)/g, '{$1}'));
  }
  return paths;
}

it.each([...new Set(operations([]).map(({ path }) => path))])(
  'the document lists the methods of %s',
  async (pattern) => {
    const url = pattern.replace(/\{(\w+)\}/g, 'batch_x');
    const { headers } = await open.call({ method: 'PUT', url });
    const allowed = String(headers['allow']).toLowerCase().split(', ');
    const documented = Object.keys(document.paths[pattern]);
    expect(allowed.filter((method) => method !== 'head').sort()).toEqual(documented.sort());
  },
);

it('the document has no dangling or unused component, and unique operation ids', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
  expect(refs.length).toBeGreaterThan(20);
  const { schemas, headers } = document.components;
  const known = [
    ...Object.keys(schemas).map((id) => `#/components/schemas/${id}`),
    ...Object.keys(headers).map((id) => `#/components/headers/${id}`),
  ];
  expect([...new Set(refs)].filter((ref) => !known.includes(ref ?? ''))).toEqual([]);
  expect(known.filter((name) => !refs.includes(name))).toEqual([]);
  const ids = operations([]).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

it('the document declares path parameters, headers and the form of an upload', () => {
  for (const { path, method } of operations([])) {
    const { parameters } = document.paths[path][method];
    const inPath = parameters.filter((one: { in: string }) => one.in === 'path');
    expect(inPath.map(({ name }: { name: string }) => `{${name}}`)).toEqual(
      path.match(/\{\w+\}/g) ?? [],
    );
  }
  const { parameters, requestBody } = document.paths['/v1/files'].post;
  expect(parameters).toEqual([expect.objectContaining({ name: 'Idempotency-Key', in: 'header' })]);
  const download = document.paths['/v1/files/{file_id}/content'].get.parameters;
  expect(download).toContainEqual(expect.objectContaining({ name: 'Range', in: 'header' }));
  expect(Object.keys(requestBody.content)).toEqual(['multipart/form-data']);
});

describe('the OpenAPI document', () => {
  const BATCH = { input_file_id: 'file-a', endpoint: '/v1/responses', completion_window: '24h' };
  const UPLOAD = { filename: 'a', purpose: 'batch', bytes: 1, mime_type: 'text/plain' };
  const LIFETIME = { anchor: 'created_at', seconds: 3600 };
  const lifetime = (seconds: string) => [
    { name: 'expires_after[anchor]', value: 'created_at' },
    { name: 'expires_after[seconds]', value: seconds },
  ];
  const get = (url: string) => ({ method: 'GET' as const, url });
  // `call` compares each request with the document: both accept it, or both refuse it.
  it.each<[string, InjectOptions]>([
    ['a batch', post('/v1/batches', BATCH)],
    ['null for what is optional', post('/v1/batches', { ...BATCH, metadata: null })],
    ['metadata', post('/v1/batches', { ...BATCH, metadata: { ['é'.repeat(64)]: 'x' } })],
    ['a lifetime', post('/v1/batches', { ...BATCH, output_expires_after: LIFETIME })],
    ['an upload', post('/v1/uploads', { ...UPLOAD, expires_after: LIFETIME })],
    ['a file', upload(batchForm())],
    ['a file with a lifetime', upload([...batchForm(), ...lifetime('+3600')])],
    ['a list of files', get('/v1/files?limit=5&order=asc&purpose=batch')],
    ['a list of batches', get('/v1/batches?limit=0')],
    ['an unknown parameter of a list', get('/v1/batches?limit=1&x=y')],
  ])('allows the requests that the API accepts: %s', async (_what, request) => {
    expect((await open.call(request)).status).toBe(200);
  });

  it.each<[string, InjectOptions]>([
    ['no file', post('/v1/batches', { ...BATCH, input_file_id: null })],
    ['an empty id', post('/v1/batches', { ...BATCH, input_file_id: '' })],
    ['an id that is too long', post('/v1/batches', { ...BATCH, input_file_id: 'x'.repeat(256) })],
    ['an endpoint that is not served', post('/v1/batches', { ...BATCH, endpoint: '/v1/x' })],
    ['a window without a unit', post('/v1/batches', { ...BATCH, completion_window: '24' })],
    ['metadata that is a list', post('/v1/batches', { ...BATCH, metadata: [] })],
    ['metadata with a number', post('/v1/batches', { ...BATCH, metadata: { a: 1 } })],
    ['metadata with null', post('/v1/batches', { ...BATCH, metadata: { a: null } })],
    ['a long key', post('/v1/batches', { ...BATCH, metadata: { ['x'.repeat(65)]: 'x' } })],
    ['a long value', post('/v1/batches', { ...BATCH, metadata: { x: 'x'.repeat(513) } })],
    [
      'seventeen pairs',
      post('/v1/batches', {
        ...BATCH,
        metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v'])),
      }),
    ],
    ['an unknown field', post('/v1/batches', { ...BATCH, x: 1 })],
    ['half a lifetime', post('/v1/uploads', { ...UPLOAD, expires_after: { seconds: 3600 } })],
    [
      'a short lifetime',
      post('/v1/uploads', { ...UPLOAD, expires_after: { ...LIFETIME, seconds: 3599 } }),
    ],
    ['an unknown purpose', post('/v1/uploads', { ...UPLOAD, purpose: 'x' })],
    ['no bytes', post('/v1/uploads', { ...UPLOAD, bytes: 0 })],
    ['half a byte', post('/v1/uploads', { ...UPLOAD, bytes: 1.5 })],
    ['a form without a file', upload([{ name: 'purpose', value: 'batch' }])],
    ['a form without a purpose', upload(batchForm().slice(1))],
    ['a form with half a lifetime', upload([...batchForm(), ...lifetime('3600').slice(1)])],
    ['a form with a long lifetime', upload([...batchForm(), ...lifetime('2592001')])],
    ['a form with an unknown field', upload([...batchForm(), { name: 'x', value: 'y' }])],
    ['a page of 0 files', get('/v1/files?limit=0')],
    ['a page of many batches', get('/v1/batches?limit=101')],
    ['a limit that is no number', get('/v1/batches?limit=x')],
    ['an unknown order', get('/v1/files?order=up')],
    ['an empty cursor', get('/v1/files?after=')],
    ['an id of another kind', get('/v1/batches/file-a')],
  ])('excludes the requests that the API refuses: %s', async (_what, request) => {
    const answer = await open.call(request);
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).not.toBeNull();
  });

  it('allows some requests that the API refuses, because a schema cannot exclude them', async () => {
    const window = post('/v1/batches', { ...BATCH, completion_window: '31d' });
    const mime = post('/v1/uploads', { ...UPLOAD, mime_type: 'é'.repeat(200) });
    for (const request of [window, mime, upload([...batchForm(), ...batchForm()])]) {
      expect((await open.call(request)).status).toBe(400);
    }
  });
});

describe('the comparison with the document', () => {
  const exchange = {
    ...{ method: 'GET', url: '/v1/batches/batch_a', payload: undefined, contentType: undefined },
  };
  const error = { message: '', type: '', param: null, code: null };

  it('finds a missing member and an undocumented status', async () => {
    const compared = (status: number, body: unknown) => undocumented({ ...exchange, status, body });
    expect(await compared(200, { id: 'batch_a' })).not.toEqual([]);
    expect(await compared(404, { error })).toEqual([]);
    expect(await compared(418, { error })).toHaveLength(1);
    expect(await compared(404, { error: {} })).not.toEqual([]);
  });

  it('finds a request that was accepted or refused against the document', async () => {
    const create = { ...exchange, method: 'POST', url: '/v1/uploads' };
    const payload = '{"filename":"a","purpose":"batch","bytes":1,"mime_type":"x"}';
    const refusal = { error: { ...error, param: 'bytes', code: 'invalid_type' } };
    const refused = { ...create, status: 400, body: refusal };
    expect(await undocumented({ ...refused, payload })).toHaveLength(1);
    expect(await undocumented({ ...refused, payload: '{}' })).toEqual([]);
    const accepted = { ...create, status: 200, body: null };
    expect(await undocumented({ ...accepted, payload })).toHaveLength(1);
    expect(await undocumented({ ...accepted, payload: '{}' })).toHaveLength(2);
  });
});
