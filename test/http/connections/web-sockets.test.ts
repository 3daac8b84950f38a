import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { serveUpgrades, upgradeOf, upgradingAt } from '../../../http/connections/web-sockets';

let app: FastifyInstance;
let seen: { key: string | undefined; isUpgrade: boolean; body: unknown }[];

beforeEach(async () => {
  seen = [];
  app = Fastify({ http: { IncomingMessage: upgradingAt(['/live']) } });
  serveUpgrades(app.server);
  app.all('/*', async ({ raw, body }, reply) => {
    const isUpgrade = upgradeOf(raw) !== undefined;
    seen.push({ key: raw.headers.authorization, isUpgrade, body });
    return reply.code(418).send({ refused: true });
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
});

afterEach(() => app.close());

const HANDSHAKE = { connection: 'Upgrade', upgrade: 'websocket' };

function ask(path: string, headers: object, { method = 'GET', body = '' } = {}): Promise<string> {
  const { port } = app.server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const options = { port, path, method, headers: headers as Record<string, string> };
    httpRequest({ host: '127.0.0.1', ...options })
      .once('response', (response) => {
        let text = `${response.statusCode} `;
        response.on('data', (chunk) => (text += String(chunk)));
        response.once('end', () => resolve(text));
      })
      .once('error', reject)
      .end(body);
  });
}

describe('upgrades to WebSockets', () => {
  it('reach the handlers of requests, whose answer refuses them', async () => {
    expect(await ask('/live?a=1', HANDSHAKE)).toBe('418 {"refused":true}');
    expect(seen).toEqual([{ key: undefined, isUpgrade: true, body: undefined }]);
  });

  it('take the key of a subprotocol for the header that web pages cannot send', async () => {
    const protocols = { 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.sk-1' };
    await ask('/live', { ...HANDSHAKE, ...protocols });
    expect(seen[0]?.key).toBe('Bearer sk-1');
  });

  it.each([
    ['another path', '/other', HANDSHAKE],
    ['another protocol', '/live', { ...HANDSHAKE, upgrade: 'h2c' }],
    ['a body', '/live', { ...HANDSHAKE, 'content-type': 'text/plain' }],
  ])('are ordinary requests with %s, and keep their body', async (_, path, headers) => {
    const type = { 'content-type': 'text/plain', 'content-length': '4' };
    const answer = await ask(path, { ...headers, ...type }, { method: 'POST', body: 'abcd' });
    expect(answer).toContain('418');
    expect(seen).toEqual([{ key: undefined, isUpgrade: false, body: 'abcd' }]);
  });

  it('survive a client that goes away in the middle', async () => {
    const { port } = app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    const lines = ['GET /live HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket'];
    await new Promise<void>((resolve) => {
      socket.write(`${lines.join('\r\n')}\r\n\r\n`, () => resolve());
    });
    socket.resetAndDestroy();
    expect(await ask('/live', HANDSHAKE)).toContain('418');
  });
});
