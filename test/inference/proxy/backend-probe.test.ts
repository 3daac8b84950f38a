import { createServer, type Server, type ServerResponse } from 'node:http';
import { BackendProbe, type BackendProbeOptions } from '../../../inference/proxy/backend-probe';
import { until } from '../../support/until';
import { closeAll, listen, onClose, portOf } from './proxy-fixtures';

afterEach(closeAll);

const LOAD = 'vllm:num_requests_waiting 6\nvllm:kv_cache_usage_perc 0.5\n';

interface Scene {
  readonly probe: BackendProbe;
  readonly server: Server;
  /** Paths asked for, in order. */
  readonly asked: string[];
  answer: (path: string, response: ServerResponse) => void;
  onProbed: () => void;
  /** Waits for `count` more probes. */
  probed(count?: number): Promise<void>;
}

async function scene(changes: Partial<BackendProbeOptions> = {}): Promise<Scene> {
  const asked: string[] = [];
  const server = createServer(({ url = '', headers }, response) => {
    asked.push(`${url} ${headers.authorization ?? ''}`.trim());
    found.answer(url, response);
  });
  await listen(server);
  let rounds = 0;
  const probe = new BackendProbe({
    url: `http://127.0.0.1:${portOf(server)}/base/v1`,
    path: '/health',
    metricsPath: null,
    authorization: null,
    tls: {},
    intervalMs: 10,
    timeoutMs: 2_000,
    fall: 2,
    onProbed: () => {
      rounds++;
      found.onProbed();
    },
    ...changes,
  });
  onClose(async () => {
    await probe.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const found: Scene = {
    probe,
    server,
    asked,
    answer: (_, response) => void response.end('ok'),
    onProbed: () => undefined,
    probed: async (count = 1) => {
      const goal = rounds + count;
      await until(() => rounds >= goal, 10_000, `${count} probes`, 2);
    },
  };
  return found;
}

describe('the probe of a backend', () => {
  it('asks the host again and again, and finds it ready or not', async () => {
    const { probe, asked, probed, ...rest } = await scene({ authorization: 'Bearer own' });
    expect([probe.isReady, probe.reason]).toEqual([false, 'not probed yet']);
    await probed(2);
    expect([probe.isReady, probe.reason, rest.server.listening]).toEqual([true, null, true]);
    expect(asked.slice(0, 2)).toEqual(['/health Bearer own', '/health Bearer own']);
  });

  it('finds a backend not ready that answers with a failure, and ready again later', async () => {
    const found = await scene();
    await found.probed();
    found.answer = (_, response) => void response.writeHead(503).end();
    await until(() => !found.probe.isReady, 5_000, 'the backend to be not ready', 2);
    expect(found.probe.reason).toBe('the probe got status 503');
    found.answer = (_, response) => void response.end();
    await until(() => found.probe.isReady, 5_000, 'the backend to be ready', 2);
  });

  it('finds a backend not ready as soon as nothing listens there', async () => {
    const found = await scene({ fall: 1_000_000 });
    await found.probed();
    expect(found.probe.isReady).toBe(true);
    found.server.close();
    found.server.closeAllConnections();
    await until(() => !found.probe.isReady, 5_000, 'the backend to be not ready', 2);
    expect(found.probe.reason).toBe('the connection was refused');
  });

  it('gives up a backend that does not answer in time', async () => {
    const found = await scene({ timeoutMs: 50 });
    found.answer = () => undefined;
    await found.probed(2);
    expect(found.probe.reason).toContain('within 50 ms');
  });

  it('reads the load of an engine, and forgets it after three missed readings', async () => {
    const found = await scene({ metricsPath: '/metrics' });
    found.answer = (path, response) => void response.end(path === '/metrics' ? LOAD : 'ok');
    await until(() => found.probe.load !== null, 5_000, 'the load', 2);
    expect(found.probe.load).toEqual({ waiting: 6, cacheUse: 0.5 });
    let missed = 0;
    const missedWithLoad = new Set<number>();
    found.answer = (path, response) => {
      if (path === '/metrics') missed++;
      response.end('ok');
    };
    found.onProbed = () => void (found.probe.load === null || missedWithLoad.add(missed));
    await until(() => found.probe.load === null, 5_000, 'the load to be forgotten', 2);
    expect([...missedWithLoad].filter((count) => count > 0)).toEqual([1, 2]);
    expect(found.probe.isReady).toBe(true);
  });

  it('ends at once when it is closed, even during a probe', async () => {
    const found = await scene();
    found.answer = () => undefined;
    const before = found.asked.length;
    await until(() => found.asked.length > before, 5_000, 'a probe that hangs', 2);
    await found.probe.close();
    const { length } = found.asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(found.probe.isReady).toBe(false);
    expect(found.asked).toHaveLength(length);
  });
});
