import { createServer, type AddressInfo, type Server } from 'node:net';
import { createPortPicker } from '../../embedded/ports';

const HOST = '127.0.0.1';
let server: Server;
let port: number;

beforeAll(async () => {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

describe('ports of a stack', () => {
  test('of inner parts move to the next free one', async () => {
    const chosen = await createPortPicker(HOST).next(port);
    expect(chosen).toBeGreaterThan(port);
  });

  test('are never handed out twice, nor where another picker gave them away', async () => {
    const picker = createPortPicker(HOST);
    const first = await picker.next(port);
    const second = await picker.next(first);
    expect(second).toBeGreaterThan(first);
    expect(await createPortPicker(HOST, [first]).next(first)).toBeGreaterThan(first);
  });

  test('that were asked for exactly are an error that says what to change', async () => {
    await expect(
      createPortPicker(HOST).exactly(port, 'choose another with --port'),
    ).rejects.toMatchObject({
      code: 'port_in_use',
      message: `port ${port} on ${HOST} is in use: choose another with --port`,
    });
  });
});
