import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPortPicker, type PortPicker } from '../../../embedded/locks/ports';

const HOST = '127.0.0.1';
let server: Server;
let port: number;

beforeAll(async () => {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

let claims: string;
const pickers: PortPicker[] = [];
function newPicker(): PortPicker {
  const picker = createPortPicker(claims);
  pickers.push(picker);
  return picker;
}

beforeEach(() => (claims = mkdtempSync(join(tmpdir(), 'nightshift-claims-'))));
afterEach(() => {
  for (const picker of pickers.splice(0)) picker.release();
  rmSync(claims, { recursive: true });
});

describe('the port picker of a stack', () => {
  it('takes the next free port if the wanted one is in use', async () => {
    expect(await newPicker().next(HOST, port)).toBeGreaterThan(port);
  });

  it('hands out no port twice', async () => {
    const picker = newPicker();
    const first = await picker.next(HOST, port);
    expect(await picker.next(HOST, first)).toBeGreaterThan(first);
  });

  it('hands out no port that another stack has claimed, until that one releases it', async () => {
    const picker = newPicker();
    const first = await picker.next(HOST, port);
    expect(await newPicker().next(HOST, first)).toBeGreaterThan(first);
    picker.release();
    expect(await newPicker().next(HOST, first)).toBe(first);
  });

  it('works without claims if they cannot be written', async () => {
    expect(await createPortPicker('/proc/nightshift').next(HOST, port)).toBeGreaterThan(port);
  });

  it('fails with advice if a port that must be exact is in use', async () => {
    const hint = 'choose another with --port';
    await expect(newPicker().exactly(HOST, port, hint)).rejects.toMatchObject({
      code: 'port_in_use',
      message: `port ${port} on ${HOST} is in use: ${hint}`,
    });
  });
});
