import { request } from 'node:http';
import { type Client, closeBareServers, connect, errorIn } from '../support/bare-server';
import { until } from '../support/until';
import { closeAll, startBackend, startGateway, type TestGateway } from './gateway-fixtures';

afterEach(closeBareServers);
afterEach(closeAll);

const BODY = JSON.stringify({ model: 'm' });
const headOf = (fields: string) =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${fields}\r\n\r\n`;
const send = (gateway: TestGateway, bytes: string): Client =>
  connect(Number(new URL(gateway.url).port), bytes);

async function untilStatus(client: Client, status: number): Promise<void> {
  await until(() => client.text().startsWith(`HTTP/1.1 ${status} `), 5_000, `a ${status}`, 2);
}

/** A gateway whose backend answers at once, and the fields of the last request that it got. */
async function echoing(settings: Record<string, unknown> = {}) {
  const backend = await startBackend((_request, response) => void response.end('{}'));
  const gateway = await startGateway([backend], settings);
  const fields = () => backend.received.findLast(({ method }) => method === 'POST')?.headers ?? {};
  return { gateway, fields };
}

it('passes 1,100 fields on, the last one too', async () => {
  const { gateway, fields } = await echoing();
  const many = Array.from({ length: 1_100 }, (_, i) => `f${i}: ${i}`).join('\r\n');
  await untilStatus(
    send(gateway, headOf(`${many}\r\nx-last: 1\r\ncontent-length: ${BODY.length}`) + BODY),
    200,
  );
  expect(fields()).toMatchObject({ f0: '0', f1099: '1099', 'x-last': '1' });
});

it('passes a field with 15,000 blanks on, and refuses more than its limit of bytes', async () => {
  const { gateway, fields } = await echoing();
  const value = `a${' '.repeat(15_000)}b`;
  const fieldsOf = (last: string) => `x-blank: ${last}\r\ncontent-length: ${BODY.length}`;
  await untilStatus(send(gateway, headOf(fieldsOf(value)) + BODY), 200);
  expect(fields()['x-blank']).toBe(value);
  const refused = send(gateway, headOf(fieldsOf(`${value}${' '.repeat(2_000)}c`)) + BODY);
  await untilStatus(refused, 431);
  expect(errorIn(refused.text())).toMatchObject({ type: 'invalid_request_error' });
});

it.each([
  ['headers', headOf('x: ').slice(0, -4), { header_timeout: '400ms' }],
  ['a body', headOf('content-length: 1000'), { body_grace: '400ms' }],
])('ends a client that sends a byte of %s now and then', async (_name, start, settings) => {
  const { gateway } = await echoing(settings);
  const client = send(gateway, start);
  const timer = setInterval(() => client.socket.write('x'), 50);
  try {
    await untilStatus(client, 408);
    await client.closed;
  } finally {
    clearInterval(timer);
  }
  expect(errorIn(client.text())).toMatchObject({ type: 'invalid_request_error' });
});

/** The status of a GET with these fields. */
function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.once('error', reject).end();
  });
}

it.each([
  ['a foreign host', { host: 'rebound.example' }],
  ['a foreign origin', { origin: 'https://evil.example' }],
  ['another site', { 'sec-fetch-site': 'cross-site' }],
])('refuses %s without authentication, on both ports', async (_name, headers) => {
  const { gateway } = await echoing();
  expect(await statusOf(`${gateway.url}/v1/models`, {})).toBe(200);
  expect(await statusOf(`${gateway.url}/v1/models`, headers)).toBe(403);
  expect(await statusOf(`${gateway.adminUrl}/admin/flow`, {})).toBe(200);
  expect(await statusOf(`${gateway.adminUrl}/admin/flow`, headers)).toBe(403);
});
