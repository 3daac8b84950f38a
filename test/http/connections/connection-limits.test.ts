import {
  type Client,
  closeBareServers,
  connect,
  errorIn,
  get,
  startBareServer as start,
} from '../../support/bare-server';
import { until } from '../../support/until';

afterEach(closeBareServers);

describe('connections beyond a limit', () => {
  it('are refused with a reason while all others are busy', async () => {
    const { port, open, closed } = await start({ total: 3 });
    const busy = [1, 2, 3].map(() => connect(port, get('/wait')));
    await until(() => open.length === 3, 5_000, 'all three to wait');
    const late = connect(port, get('/'));
    await late.closed;
    expect(late.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(late.text()).toMatch(/retry-after: \d/);
    expect(errorIn(late.text())).toMatchObject({ type: 'server_error', param: null, code: null });
    expect(closed).toEqual(['max_connections']);
    for (const response of open) response.end('done');
    await until(() => busy.every((client) => client.text().endsWith('done')), 5_000, 'answers');
    busy[0]?.socket.destroy();
    await busy[0]?.closed;
    await until(
      async () => {
        const next = connect(port, get('/').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
        await next.closed;
        return next.text().endsWith('hello');
      },
      5_000,
      'room for another one',
    );
  });

  it('replace the longest idle ones at once', async () => {
    const { port, closed } = await start({ total: 3 });
    const [silent, partial, kept] = [
      connect(port),
      connect(port, 'GET / HTTP/1.1\r\nhost: lo'),
      connect(port, get('/')),
    ];
    await until(() => kept.text().endsWith('hello'), 5_000, 'the first answer');
    const served: Client[] = [];
    await until(
      async () => {
        const next = connect(port, get('/'));
        await Promise.race([
          next.closed,
          until(() => next.text().endsWith('hello'), 5_000, 'its answer'),
        ]);
        if (next.text().endsWith('hello')) served.push(next);
        return served.length === 2;
      },
      10_000,
      'two more to be served',
    );
    await Promise.all([silent.closed, partial.closed]);
    // While they are fresh, new connections are refused.
    expect(closed.filter((reason) => reason !== 'max_connections')).toEqual(['evicted', 'evicted']);
    expect(silent.text()).toBe('');
    expect(partial.text()).toMatch(/^HTTP\/1\.1 503 /);
    expect(errorIn(partial.text())['message']).toContain('too long to arrive');
    expect(kept.socket.closed).toBe(false);
  });

  it('are counted per address', async () => {
    const { port, open, closed } = await start({ perAddress: 2 });
    for (let i = 0; i < 2; i++) connect(port, get('/wait'));
    await until(() => open.length === 2, 5_000, 'both to wait');
    const third = connect(port, get('/'));
    await third.closed;
    expect(third.text()).toMatch(/^HTTP\/1\.1 429 /);
    expect(errorIn(third.text())).toMatchObject({ type: 'requests', code: 'rate_limit_exceeded' });
    expect(closed).toEqual(['max_connections_per_address']);
    const other = connect(port, get('/'), '127.0.0.2');
    await until(() => other.text().endsWith('hello'), 5_000, 'the other address to be served');
  });

  it('are closed without an answer if too many come at once', async () => {
    const { port, open } = await start({ total: 1 });
    connect(port, get('/wait'));
    await until(() => open.length === 1, 5_000, 'the first to wait');
    const crowd = Array.from({ length: 400 }, () => connect(port));
    await Promise.all(crowd.map(({ closed }) => closed));
    expect(crowd.some((client) => client.text().startsWith('HTTP/1.1 503 '))).toBe(true);
  }, 20_000);
});
