import { createHash } from 'node:crypto';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import {
  closeAll,
  frontOf,
  listen,
  onClose,
  portOf,
  POST,
  rawClient,
  rawServer,
} from './proxy-fixtures';
import { until } from '../../support/until';

afterEach(closeAll);

const CLOSING = POST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');

describe('a request that is passed through', () => {
  it('arrives byte for byte, with the order, case and repetitions of its fields', async () => {
    const seen: string[] = [];
    const backend = await rawServer((socket, received) => {
      seen.push(received.toString('latin1'));
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
    const front = await frontOf(backend.url);
    const body = '{"a":"\xc3\xa9\\ud83d"} ';
    rawClient(
      front.port,
      'POST /v1/x?y=%20z HTTP/1.1\r\nHost: front\r\nX-Twice: b\r\nACCEPT: */*\r\nX-twice: A\r\n' +
        'X-Odd: caf\xe9 \t  end\r\nX-Empty:\r\nConnection: keep-alive, X-Hop\r\nx-hop: 1\r\nTE: trailers\r\n' +
        'x-Nightshift-Priority: 2\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer Client\r\n' +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    expect(await front.ended()).toMatchObject({ outcome: 'answered', status: 204, bytes: 0 });
    const { port } = new URL(backend.url);
    expect(seen.join('')).toBe(
      `POST /v1/x?y=%20z HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\n` +
        'X-Twice: b\r\nACCEPT: */*\r\nX-twice: A\r\nX-Odd: caf\xe9 \t  end\r\nX-Empty: \r\n' +
        'Authorization: Bearer Client\r\naccept-encoding: identity\r\n' +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
  });

  it.each([
    ['the key of the backend', { authorization: 'Bearer own' }, 'Bearer own'],
    ['no key if the client may not use its own', { keepsAuthorization: false }, undefined],
    ['no field that is withheld', { withheld: ['authorization'] }, undefined],
    ['fields that the gateway sets', { ownHeaders: ['Authorization', 'Bearer set'] }, 'Bearer set'],
  ])('carries %s', async (_, settings, expected) => {
    const seen: IncomingHttpHeaders[] = [];
    const server = createServer(({ headers }, response) => {
      seen.push(headers);
      response.end();
    });
    await listen(server);
    onClose(() => void server.close());
    const front = await frontOf(`http://127.0.0.1:${portOf(server)}/v1`, settings);
    rawClient(front.port, POST.replace('\r\n\r\n', '\r\nAuthorization: Bearer client\r\n\r\n'));
    await front.ended();
    expect(seen.map(({ authorization }) => authorization)).toEqual([expected]);
  });
});

describe('an answer that is passed through', () => {
  it('arrives byte for byte, with the order, case and repetitions of its fields', async () => {
    const backend = await rawServer((socket) => {
      socket.write(
        'HTTP/1.1 418 Whatever\r\nSet-Cookie: b=1\r\nX-A: 1\r\nset-cookie: A=\xe9\r\nDate: today\r\n' +
          'Keep-Alive: timeout=5\r\nX-Nightshift-Dropped: evicted\r\nContent-Length: 5\r\n\r\n\x00\xff{}\n',
        'latin1',
      );
    });
    const front = await frontOf(backend.url);
    const client = rawClient(front.port, CLOSING);
    await until(() => client.socket.closed, 5_000, 'the end of the answer', 2);
    expect(client.text()).toBe(
      "HTTP/1.1 418 I'm a Teapot\r\nSet-Cookie: b=1\r\nX-A: 1\r\nset-cookie: A=\xe9\r\nDate: today\r\n" +
        'Content-Length: 5\r\nConnection: close\r\n\r\n\x00\xff{}\n',
    );
  });

  it('arrives piece by piece, each before the backend sends the next', async () => {
    const pieces = ['a', 'data: b\n', '\ndata: c\n\n'];
    const backend = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
    });
    const front = await frontOf(backend.url);
    const client = rawClient(front.port, POST);
    await until(() => client.text().includes('\r\n\r\n'), 5_000, 'the head', 2);
    for (const piece of pieces) {
      backend.sockets.forEach((socket) => socket.write(piece));
      await until(() => client.text().endsWith(`${piece}\r\n`), 5_000, `the piece ${piece}`, 2);
    }
    backend.sockets.forEach((socket) => socket.end());
    expect(await front.ended()).toMatchObject({ outcome: 'answered', bytes: 19, events: 1 });
    await until(() => client.text().endsWith('\r\n0\r\n\r\n'), 5_000, 'the end', 2);
  });

  it('comes after interim answers, which are not passed on, and before its trailers', async () => {
    const backend = await rawServer((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n');
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n');
      socket.write('2\r\nok\r\n0\r\nX-Sum: 7\r\nX-Nightshift-A: 1\r\n\r\n');
    });
    const front = await frontOf(backend.url);
    const client = rawClient(front.port, CLOSING);
    await until(() => client.socket.closed, 5_000, 'the end of the answer', 2);
    const [head = '', ...body] = client.text().split('\r\n\r\n');
    expect(head).toMatch(
      /^HTTP\/1\.1 200 OK\r\nDate: [^\r]+\r\nConnection: close\r\nTransfer-Enc[^\r]+$/,
    );
    expect(body.join('|')).toBe('2\r\nok\r\n0\r\nX-Sum: 7|');
  });

  it('keeps connections to the backend, unless the backend closes them', async () => {
    let connections = 0;
    const server = createServer((_, response) => response.end('{}'));
    server.on('connection', () => connections++);
    await listen(server);
    onClose(() => void server.closeAllConnections());
    onClose(() => void server.close());
    const front = await frontOf(`http://127.0.0.1:${portOf(server)}`);
    const client = rawClient(front.port, POST);
    for (let count = 1; count <= 5; count++) {
      await front.ended(count);
      client.socket.write(POST);
    }
    expect(connections).toBe(1);
    const closing = await rawServer(
      (socket) => void socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end'),
    );
    const other = await frontOf(closing.url);
    const reader = rawClient(other.port, CLOSING);
    await until(() => reader.socket.closed, 5_000, 'the end of the answer', 2);
    expect(reader.text()).toContain('\r\nuntil the end\r\n0\r\n\r\n');
  });
});

describe('many exchanges at once', () => {
  it('each get their own answer, with large bodies both ways', async () => {
    const server = createServer((incoming, response) => {
      response.writeHead(200, { 'x-of': incoming.headers['x-of'] });
      incoming.pipe(response);
    });
    await listen(server);
    onClose(() => void server.close());
    const front = await frontOf(`http://127.0.0.1:${portOf(server)}`);
    const sizes = [8 * 1024 * 1024, 300_000, 70_000, ...Array.from({ length: 997 }, (_, i) => i)];
    const wrong = await Promise.all(
      sizes.map(async (size, i) => {
        const body = Buffer.alloc(size, `${i} `);
        const answer = await post(front.port, { body, of: String(i) });
        return answer.of === String(i) && answer.hash === hashOf(body) ? null : i;
      }),
    );
    expect(wrong.filter((i) => i !== null)).toEqual([]);
    expect(front.ends.filter(({ outcome }) => outcome === 'answered')).toHaveLength(1_000);
  });
});

function hashOf(body: Buffer): string {
  return createHash('sha1').update(body).digest('hex');
}

function post(
  port: number,
  { body, of }: { body: Buffer; of: string },
): Promise<{ of: unknown; hash: string }> {
  return new Promise((resolve, reject) => {
    const options = { port, method: 'POST', path: '/v1/x', headers: { 'x-of': of }, agent: false };
    const sent = request(options, (answer) => {
      const hash = createHash('sha1');
      answer.on('data', (chunk: Buffer) => void hash.update(chunk));
      answer.on('end', () => resolve({ of: answer.headers['x-of'], hash: hash.digest('hex') }));
      answer.on('error', reject);
    });
    sent.on('error', reject).end(body);
  });
}
