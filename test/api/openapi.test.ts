import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { openApiDocument } from '../../api/openapi/document';
import { OPERATIONS } from '../../api/openapi/operations';
import { configSchema } from '../../platform/config-schema';
import { openTestApi, type TestApi } from '../support/api';
import { undocumented } from '../support/documented';
import { POSTGRES_START_MS } from '../support/postgres';

// Every other test of the API holds its answers against the document too: see `call` in support/api.

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- looked into freely
let document: any;
let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ auth: { mode: 'api_key' } });
  document = (await api.call({ method: 'GET', url: '/openapi.json' })).body;
}, POSTGRES_START_MS);
afterAll(() => api.close());

it('is served to everybody', () => {
  expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Nightshift' } });
});

it('is valid by the schemas of OpenAPI 3.1', () => {
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
])('says who may ask in mode %s %j', (mode, more, scheme, security) => {
  const { auth, batch } = configSchema.parse({ auth: { mode, ...more } });
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- looked into freely
  const made: any = openApiDocument({ auth, endpoints: batch.endpoints });
  expect(made.security).toEqual(security);
  const caller = made.components.securitySchemes?.caller;
  if (scheme === undefined) expect(caller).toBeUndefined();
  else expect(caller).toMatchObject(scheme);
});

it('names the endpoints that are served here', () => {
  const { auth } = configSchema.parse({});
  const { components } = openApiDocument({ auth, endpoints: ['/v1/embeddings'] });
  expect(components).toMatchObject({
    schemas: { CreateBatch: { properties: { endpoint: { enum: ['/v1/embeddings'] } } } },
  });
});

it('describes the headers that answers carry', async () => {
  const names = Object.keys(document.components.headers);
  for (const { path: url, method } of OPERATIONS) {
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

it('describes every route under /v1 and no other', () => {
  const served = routes().filter((path) => path.startsWith('/v1/'));
  expect(Object.keys(document.paths).sort()).toEqual([...new Set(served)].sort());
});

/** Paths of all routes, off the tree that the framework prints: four columns for each level. */
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

it.each([...new Set(OPERATIONS.map(({ path }) => path))])(
  'names the methods that %s takes',
  async (pattern) => {
    // Authentication comes before: a mode without it shows the methods.
    const open = await openTestApi();
    const url = pattern.replace(/\{(\w+)\}/g, 'batch_x');
    const { headers } = await open.call({ method: 'PUT', url });
    await open.close();
    const allowed = String(headers['allow']).toLowerCase().split(', ');
    const documented = Object.keys(document.paths[pattern]);
    expect(allowed.filter((method) => method !== 'head').sort()).toEqual(documented.sort());
  },
);

it('refers only to what it holds, and names each operation once', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
  expect(refs.length).toBeGreaterThan(20);
  const { schemas, headers } = document.components;
  const known = [
    ...Object.keys(schemas).map((id) => `#/components/schemas/${id}`),
    ...Object.keys(headers).map((id) => `#/components/headers/${id}`),
  ];
  expect([...new Set(refs)].filter((ref) => !known.includes(ref ?? ''))).toEqual([]);
  expect(known.filter((name) => !refs.includes(name))).toEqual([]);
  const ids = OPERATIONS.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

it('declares what is variable in a path, and what goes with it', () => {
  for (const { path, method } of OPERATIONS) {
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

describe('the comparison of answers with the document', () => {
  const exchange = { method: 'GET', url: '/v1/batches/batch_a', payload: undefined };

  it('sees a member that is missing, and a status that is not named', () => {
    expect(undocumented({ ...exchange, status: 200, body: { id: 'batch_a' } })).not.toEqual([]);
    const error = { message: '', type: '', param: null, code: null };
    expect(undocumented({ ...exchange, status: 404, body: { error } })).toEqual([]);
    expect(undocumented({ ...exchange, status: 418, body: { error } })).toHaveLength(1);
    expect(undocumented({ ...exchange, status: 404, body: { error: {} } })).not.toEqual([]);
  });
});
