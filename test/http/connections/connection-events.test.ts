import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { BOUNDARY, batchForm, formBytes, openTestApi, type TestApi } from '../../support/api';
import { POSTGRES_START_MS } from '../../support/postgres';
import { until } from '../../support/until';

let api: TestApi;
let port: number;
beforeAll(async () => {
  api = await openTestApi({ deps: { maxUploadBytes: 1_000_000 } });
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = api.app.server.address() as AddressInfo);
}, POSTGRES_START_MS);
afterAll(() => api.close());

interface WireAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Sends bytes as they are; resolves with all that came back when the other side has closed. */
function exchange(bytes: string | Buffer, { end = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('error', reject);
    socket.on('end', () => socket.end());
    socket.on('close', () => resolve(answer));
    socket.write(bytes);
    if (end) socket.end();
  });
}

/** The answers in what came back, one behind the other. */
function answersIn(text: string): WireAnswer[] {
  const found: WireAnswer[] = [];
  for (let rest = text; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const fields = lines.map((line) => /^([^:]+): ?(.*)$/.exec(line)!.slice(1) as [string, string]);
    const headers = Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value]));
    const length = Number(headers['content-length'] ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    found.push({ status: Number(first.split(' ')[1]), headers, body });
    rest = rest.slice(end + 4 + length);
  }
  return found;
}

const LIST = 'GET /v1/files?limit=1 HTTP/1.1\r\nhost: localhost\r\n';

function expectRefusal(answer: WireAnswer | undefined, status: number): void {
  expect(answer?.status).toBe(status);
  expect(answer?.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': expect.stringMatching(/^req_[0-9a-f]{32}$/),
    'openai-version': '2020-10-01',
    'openai-organization': 'default',
    'openai-processing-ms': expect.stringMatching(/^\d+$/),
    'x-content-type-options': 'nosniff',
  });
  expect(JSON.parse(answer?.body ?? '')).toEqual({
    error: {
      message: expect.any(String),
      type: 'invalid_request_error',
      param: null,
      code: null,
    },
  });
}

it.each([
  ['nonsense', 'NONSENSE\r\n\r\n', 400],
  ['a method that nobody knows', 'FOO /v1/files HTTP/1.1\r\nhost: localhost\r\n\r\n', 400],
  ['another version', 'GET / HTTP/1.7\r\nhost: localhost\r\n\r\n', 400],
  ['the beginning of TLS', Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0]), 400],
  ['a header without a colon', `${LIST}nonsense\r\n\r\n`, 400],
  [
    'two lengths',
    'POST /v1/files HTTP/1.1\r\nhost: localhost\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n',
    400,
  ],
  [
    'a negative length',
    'POST /v1/files HTTP/1.1\r\nhost: localhost\r\nContent-Length: -1\r\n\r\n',
    400,
  ],
  ['headers that are too large', `${LIST}x: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
  ['a URL that is too long', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 414],
  ['a URL of a megabyte', `GET /${'a'.repeat(1_000_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 414],
  ['a tunnel', 'CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n', 405],
] as [string, string | Buffer, number][])(
  'answers %s in the envelope',
  async (_what, bytes, status) => {
    const [answer, ...more] = answersIn(await exchange(bytes));
    expectRefusal(answer, status);
    expect(answer?.headers['connection']).toBe('close');
    expect(more).toEqual([]);
  },
);

it.each([
  ['no host', 'GET /v1/files HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
  ['two hosts', 'GET /v1/files HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n', 400],
  [
    'a method of another protocol',
    'PROPFIND /v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    405,
  ],
  [
    'a coding that nobody unpacks',
    'POST /v1/files HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: multipart/form-data; boundary=a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    415,
  ],
])('answers a request with %s in the envelope', async (_what, bytes, status) => {
  expectRefusal(answersIn(await exchange(bytes))[0], status);
});

it('refuses two idempotency keys in one request', async () => {
  const head =
    'POST /v1/batches HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n';
  const keys = 'idempotency-key: a\r\nIdempotency-Key: b\r\n';
  const [answer] = answersIn(await exchange(`${head}${keys}\r\n{}`));
  expect(answer?.status).toBe(400);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { param: 'Idempotency-Key' } });
});

it('answers what came before the nonsense first', async () => {
  const text = await exchange(
    `${LIST}\r\nGET /nowhere HTTP/1.1\r\nhost: localhost\r\n\r\nNONSENSE\r\n\r\n`,
  );
  const answers = answersIn(text);
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 400]);
  expectRefusal(answers[2], 400);
});

it('answers nonsense once, however much of it comes while the request before is worked on', async () => {
  const { server } = api.app;
  const client = await api.database.pool.connect();
  await client.query('begin');
  await client.query('lock table files in access exclusive mode');
  let heard = 0;
  const onError = (): void => void heard++;
  server.on('clientError', onError);
  const served = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.write(`${LIST}\r\n`);
  const [, response] = await served;
  const listeners = response.listenerCount('close');
  for (let sent = 1; sent <= 5; sent++) {
    socket.write('NONSENSE\r\n\r\n');
    await until(() => heard === sent, 5_000, 'the nonsense to be heard');
  }
  expect(response.listenerCount('close')).toBe(listeners + 1);
  server.off('clientError', onError);
  await client.query('commit');
  client.release();
  await once(socket, 'close');
  expect(answersIn(text).map(({ status }) => status)).toEqual([200, 400]);
});

it('takes no notice of an expectation that it does not know', async () => {
  const [answer] = answersIn(
    await exchange(`${LIST}expect: miracles\r\nconnection: close\r\n\r\n`),
  );
  expect(answer?.status).toBe(200);
});

const UPLOAD = `POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\n`;

it('refuses a body that is too long before it is sent, where the client asks', async () => {
  const ask = `${UPLOAD}expect: 100-continue\r\ncontent-length: 90000000\r\n\r\n`;
  const answers = answersIn(await exchange(ask, { end: false }));
  expect(answers.map(({ status }) => status)).toEqual([413]);
});

it('makes no file of a form whose request is not whole', async () => {
  const form = formBytes(batchForm());
  const before = await api.keys();
  const head = Buffer.from(`${UPLOAD}content-length: ${form.length + 1}\r\n\r\n`);
  const [answer] = answersIn(await exchange(Buffer.concat([head, form]), { end: true }));
  expectRefusal(answer, 400);
  await until(async () => (await api.keys()).length === before.length, 5_000, 'its object to go');
  const { rows } = await api.database.pool.query('select id from files');
  expect(rows).toEqual([]);
});

it('bounds a form that has no end', async () => {
  const chunk = Buffer.alloc(100_000, 'x');
  const piece = Buffer.concat([
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from('\r\n'),
  ]);
  const body = Buffer.concat([
    ...Array.from({ length: 40 }, () => piece),
    Buffer.from('0\r\n\r\n'),
  ]);
  const head = Buffer.from(`${UPLOAD}transfer-encoding: chunked\r\nconnection: close\r\n\r\n`);
  const [answer] = answersIn(await exchange(Buffer.concat([head, body])));
  expectRefusal(answer, 400);
  expect(answer?.body).toContain('larger than the limit');
});

it('goes on with the connection after a body that was too large', async () => {
  const json = `{"x":"${'a'.repeat(3 * 1024 * 1024)}"}`;
  const head = `POST /v1/uploads HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${json.length}\r\n\r\n`;
  const answers = answersIn(await exchange(`${head}${json}${LIST}connection: close\r\n\r\n`));
  expect(answers.map(({ status }) => status)).toEqual([413, 200]);
});

it('refuses JSON over the limit that comes in chunks, and goes on with the connection', async () => {
  const head = `POST /v1/batches HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`;
  const request = (length: number) => {
    const json = `{"input_file_id":7,"x":"${'a'.repeat(length)}"}`;
    const pieces = json.match(/.{1,60000}/gs)!.map((x) => `${x.length.toString(16)}\r\n${x}\r\n`);
    return `${head}${pieces.join('')}0\r\n\r\n`;
  };
  const text = await exchange(
    `${request(1024 * 1024)}${request(1024 * 1024 - 100)}${LIST}connection: close\r\n\r\n`,
  );
  const answers = answersIn(text);
  expect(answers.map(({ status }) => status)).toEqual([413, 400, 200]);
  expectRefusal(answers[0], 413);
  expect(JSON.parse(answers[1]!.body)).toMatchObject({ error: { param: 'input_file_id' } });
});

describe('where nothing moves for long', () => {
  let idle: TestApi;
  beforeAll(async () => {
    idle = await openTestApi();
    await idle.app.listen({ host: '127.0.0.1', port: 0 });
    idle.app.server.setTimeout(300);
    ({ port } = idle.app.server.address() as AddressInfo);
  }, POSTGRES_START_MS);
  afterAll(() => idle.close());

  it('a request that does not come to its end is answered 408', async () => {
    const before = await idle.keys();
    const text = await exchange(`${UPLOAD}content-length: 1000\r\n\r\n--${BOUNDARY}\r\n`);
    expectRefusal(answersIn(text)[0], 408);
    expect(await idle.keys()).toEqual(before);
  });

  it('a request that is being worked on is answered all the same', async () => {
    const client = await idle.database.pool.connect();
    await client.query('begin');
    await client.query('lock table files in access exclusive mode');
    const idled = once(idle.app.server, 'timeout');
    const answer = exchange(`${LIST}connection: close\r\n\r\n`);
    await idled;
    await client.query('commit');
    client.release();
    expect(answersIn(await answer)[0]?.status).toBe(200);
  });
});
