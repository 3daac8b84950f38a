import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { maskedSignatures, openSignedUrls } from '../../providers/signed-urls';
import { signal } from './calls';
import { QUICK } from './simulated-host';

const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A storage that answers each request, and keeps it. */
async function openStorage() {
  const requests: { request: IncomingMessage; body: string }[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      requests.push({ request, body: Buffer.concat(pieces).toString() });
      response.end(request.method === 'GET' ? 'a file' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

function open(url: string) {
  const urls = openSignedUrls({ ...QUICK, url, apiKey: null });
  closers.push(() => urls.close());
  return urls;
}

const input = {
  bytes: 9,
  async *open() {
    yield Buffer.from('recording');
  },
};

it('writes and reads at the address, byte for byte, and sends no key', async () => {
  const { url, requests } = await openStorage();
  const urls = open('http://provider.test');
  const address = `${url}/c/a%20b.wav?sv=1&sig=a%2Fb%3D`;
  const headers = ['x-ms-blob-type', 'BlockBlob'];
  expect(await urls.upload(address, { input, headers }, signal)).toMatchObject({ status: 200 });
  const pieces: Buffer[] = [];
  const take = async (piece: Buffer) => void pieces.push(piece);
  expect(await urls.download(address, take, signal)).toMatchObject({ status: 200 });
  expect(Buffer.concat(pieces).toString()).toBe('a file');
  const seen = requests.map(({ request, body }) => [request.method, request.url, body]);
  expect(seen).toEqual([
    ['PUT', '/c/a%20b.wav?sv=1&sig=a%2Fb%3D', 'recording'],
    ['GET', '/c/a%20b.wav?sv=1&sig=a%2Fb%3D', ''],
  ]);
  expect(requests[0]?.request.headers).toMatchObject({ 'x-ms-blob-type': 'BlockBlob' });
  const names = requests.flatMap(({ request }) => Object.keys(request.headers));
  expect(names.filter((name) => /key|authorization|cookie/.test(name))).toEqual([]);
});

it.each(['http://storage.test/a', 'ftp://storage.test/a', 'a', ''])(
  'sends nothing to %j for a provider with TLS',
  async (address) => {
    const urls = open('https://provider.test');
    const failure = { kind: 'failure', reason: 'unsent', mayBeSent: false };
    const take = () => Promise.resolve();
    expect(await urls.download(address, take, signal)).toMatchObject(failure);
    expect(await urls.upload(address, { input, headers: [] }, signal)).toMatchObject(failure);
  },
);

it('shows no signature of Azure, Google or AWS', () => {
  const said = 'a?sv=1&sig=x%2F b?X-Goog-Signature=y&z=1 "c?X-Amz-Signature=q"';
  expect(maskedSignatures(said)).toBe(
    'a?sv=1&sig=*** b?X-Goog-Signature=***&z=1 "c?X-Amz-Signature=***"',
  );
});
