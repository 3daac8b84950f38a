import { createServer } from 'node:net';
import { isFree } from '../../embedded/locks/ports';
import { listenFault } from '../../platform/listen-fault';
import { startSimulator } from '../../simulator/main';

/** The system's own error if no server can listen on this address. */
function refusal(host: string, port = 0): Promise<NodeJS.ErrnoException> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', resolve);
    server.listen(port, host, () => {
      server.close();
      reject(new Error(`${host}:${port} can be listened on`));
    });
  });
}

const PLACE = { port: 0, portSetting: 'api.port' };
/** Hosts that cannot work: a reserved name, a reserved address, and a malformed address. */
const HOSTS: [string, string, string][] = [
  ['a name without an address', 'nowhere.invalid', 'has no address in DNS'],
  ['an address of another machine', '192.0.2.1', 'is not an address of this machine'],
  ['an address that is malformed', '300.1.2.3', 'has no address in DNS'],
];

describe('a host on which nothing can listen', () => {
  it.each(HOSTS)('%s is a configuration error that says what to do', async (_, host, words) => {
    const fault = listenFault(await refusal(host), { ...PLACE, host });
    expect(fault).toMatchObject({ code: 'config_invalid' });
    expect(fault.message).toContain(`api.host: "${host}" ${words}`);
    expect(fault.message).toContain('such as 127.0.0.1');
  });

  it.each(HOSTS)('%s is a configuration error for the search of a free port', async (_, host) => {
    await expect(isFree(host, 1)).rejects.toMatchObject({ code: 'config_invalid' });
  });

  it.each(HOSTS)('%s is a configuration error for the simulator', async (_, host) => {
    const start = startSimulator({ host, port: 0 });
    await expect(start).rejects.toMatchObject({ code: 'config_invalid' });
  });
});

describe('a port', () => {
  it('that requires privileges is reported as a configuration error', () => {
    const error = Object.assign(new Error('denied'), { code: 'EACCES', syscall: 'listen' });
    const fault = listenFault(error, { host: '127.0.0.1', port: 80, portSetting: 'api.port' });
    expect(fault).toMatchObject({ code: 'config_invalid' });
    expect(fault.message).toMatch(/^api\.port: listening on port 80 requires privileges/);
  });

  it('that another process has is reported as port_in_use', () => {
    const error = Object.assign(new Error('taken'), { code: 'EADDRINUSE', syscall: 'listen' });
    const fault = listenFault(error, { host: '127.0.0.1', port: 80, portSetting: 'api.port' });
    expect(fault).toMatchObject({ code: 'port_in_use' });
    expect(fault.message).toContain('api.port');
  });
});

it('returns an error that is not about addresses unchanged', () => {
  const error = Object.assign(new Error('too many files'), { code: 'EMFILE' });
  expect(listenFault(error, { ...PLACE, host: '127.0.0.1' })).toBe(error);
});
