import { closeAll, frontOf, rawClient, rawServer } from './proxy-fixtures';
import { until } from '../../support/until';

afterEach(closeAll);

const REQUEST = 'POST /v1/chat/completions HTTP/1.1\r\nHost: front\r\nContent-Length: 2\r\n\r\n{}';

describe('a request that is passed through', () => {
  it('arrives byte for byte, with the order, case and repetitions of its fields', async () => {
    const seen: string[] = [];
    const backend = await rawServer((socket, received) => {
      seen.push(received.toString('latin1'));
      socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
    const front = await frontOf(backend.url);
    const body = Buffer.from('{"a":"\u00e9\\ud83d"}').toString('latin1');
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
    const client = rawClient(
      front.port,
      REQUEST.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    );
    await until(() => client.socket.closed, 5_000, 'the end of the answer', 2);
    expect(client.text()).toBe(
      "HTTP/1.1 418 I'm a Teapot\r\nSet-Cookie: b=1\r\nX-A: 1\r\nset-cookie: A=\xe9\r\nDate: today\r\n" +
        'Content-Length: 5\r\nConnection: close\r\n\r\n\x00\xff{}\n',
    );
  });
});
