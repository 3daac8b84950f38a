import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { gatewayDocument } from '../../../gateway/openapi/document';
import { configSchema } from '../../../platform/config-schema';
import { formOf } from '../audio/audio-fixtures';
import { FORM_TYPE } from '../audio/forms';
import { ask, closeAll, startBackend, startGateway } from '../gateway-fixtures';

afterEach(closeAll);

function documentOf(auth: object = {}) {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the test reads any member
  return gatewayDocument(configSchema.parse({ auth }).auth) as any;
}

const POST = '/v1/chat/completions';

it('the document of the gateway is valid OpenAPI 3.1', () => {
  const script = path.join(__dirname, '..', '..', 'support', 'validate-openapi.mjs');
  const judge = (document: unknown) =>
    JSON.parse(
      execFileSync(process.execPath, [script], { input: JSON.stringify(document) }).toString(),
    ) as unknown[];
  const document = documentOf({ mode: 'api_key' });
  expect(judge(document)).toEqual([]);
  expect(judge({ ...document, paths: { models: {} } })).not.toEqual([]);
}, 30_000);

it('the document of the gateway has no dangling or unused component, and unique ids', () => {
  const document = documentOf();
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/([^"]+)"/g)];
  const { schemas, headers } = document.components;
  const known = [
    ...Object.keys(schemas).map((name) => `schemas/${name}`),
    ...Object.keys(headers).map((name) => `headers/${name}`),
  ];
  expect([...new Set(refs.map(([, ref]) => ref))].sort()).toEqual(known.sort());
  const ids = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap(
    (methods) => Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

it('serves its document without a key, and the paths in it and no other', async () => {
  const backend = await startBackend((_request, response) => void response.end('{}'));
  const gateway = await startGateway([backend], {
    auth: { mode: 'header' },
  });
  const document = await (await fetch(`${gateway.url}/openapi.json`)).json();
  expect(document).toEqual(documentOf({ mode: 'header' }));
  const headers = { 'x-maas-username': 'a', 'content-type': 'application/json' };
  for (const [url, methods] of Object.entries(documentOf().paths)) {
    const method = Object.keys(methods as object)[0]!.toUpperCase();
    const body = method === 'POST' ? { body: '{"model":"m"}' } : {};
    const place = `${gateway.url}${url.replace('{model}', 'm').replace('{request_id}', 'x')}`;
    const isForm = /audio\/trans\w+$/.test(url);
    const sent = isForm
      ? { body: formOf({ model: 'm' }), headers: { ...headers, 'content-type': FORM_TYPE } }
      : { headers, ...body };
    expect([url, (await fetch(place, { method, ...sent })).status]).toEqual([url, 200]);
  }
  const other = { method: 'POST', headers, body: '{}' };
  expect((await fetch(`${gateway.url}/v1/images/generations`, other)).status).toBe(404);
});

it('the document describes the headers of answers that are passed on, and of drops', async () => {
  const backend = await startBackend((_request, response) => void response.end('{}'));
  const gateway = await startGateway([backend]);
  const passed = await ask(gateway).answer;
  const dropped = await ask(gateway, {}, { 'x-slo-ttft-ms': '0' }).answer;
  expect([passed.status, dropped.status]).toEqual([200, 504]);
  const { responses } = documentOf().paths[POST].post;
  for (const { status, headers } of [passed, dropped]) {
    const documented = Object.keys(responses[status].headers);
    expect(documented.filter((name) => headers[name] === undefined)).toEqual([]);
  }
});
