import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { configSchema } from '../../platform/config-schema';
import type { Logger } from '../../platform/logger';
import { createMetricsRegistry } from '../../platform/metrics';
import {
  startObservabilityServer,
  type ObservabilityOptions,
  type ObservabilityServer,
} from '../../platform/observability-server';
import { apiOriginRules, originCheck } from '../../platform/own-names';
import type { ReadinessCheck } from '../../platform/readiness';
import { createWorkerMetrics } from '../../platform/worker-metrics';

const running: ObservabilityServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.close();
});

/** A server whose process has started, with these checks. */
async function start(
  options: Partial<ObservabilityOptions> = {},
  checks: Readonly<Record<string, ReadinessCheck>> = {},
): Promise<ObservabilityServer> {
  const registry = createMetricsRegistry('worker');
  const server = await startObservabilityServer({
    host: '127.0.0.1',
    port: 0,
    registry,
    ...options,
  });
  running.push(server);
  server.markStarted(checks);
  return server;
}

async function get(server: ObservabilityServer, path: string) {
  const response = await fetch(`${server.url}${path}`);
  return { status: response.status, text: await response.text() };
}

describe('the observability server', () => {
  it('is healthy while the process lives, ready or not', async () => {
    const server = await start({}, { postgres: () => Promise.reject(new Error('away')) });
    expect((await get(server, '/health')).status).toBe(200);
  });

  it('is ready only if every check passes, and names the failed one but not the reason', async () => {
    let isUp = false;
    const postgres = () =>
      isUp ? Promise.resolve() : Promise.reject(new Error('connection refused'));
    const server = await start({}, { postgres, temporal: () => Promise.resolve() });
    const before = await get(server, '/ready');
    expect(before.status).toBe(503);
    expect(JSON.parse(before.text)).toEqual({
      status: 'not_ready',
      pid: process.pid,
      checks: { postgres: 'failed, see the log', temporal: 'ok' },
    });
    isUp = true;
    expect((await get(server, '/ready')).status).toBe(200);
  });

  it('does not wait longer for a check than its limit', async () => {
    const stuck = () => new Promise<void>(() => undefined);
    const server = await start({ checkTimeoutMs: 20 }, { stuck });
    const { status, text } = await get(server, '/ready');
    expect(status).toBe(503);
    expect(text).toContain('no answer within 20 ms');
  });

  it('is not ready before the process has started, and says what that waits for', async () => {
    const server = await startObservabilityServer({
      ...{ host: '127.0.0.1', port: 0, registry: createMetricsRegistry('worker') },
    });
    running.push(server);
    const notReady = async () => JSON.parse((await get(server, '/ready')).text).checks.process;
    expect(await notReady()).toBe('starting');
    server.markStarting('waiting for postgres');
    expect(await notReady()).toBe('waiting for postgres');
    expect((await get(server, '/health')).status).toBe(200);
    server.markStarted({});
    expect((await get(server, '/ready')).status).toBe(200);
  });

  it('is no longer ready after markNotReady', async () => {
    const server = await start();
    expect((await get(server, '/ready')).status).toBe(200);
    server.markNotReady('guard_shutdown');
    const { status, text } = await get(server, '/ready');
    expect(status).toBe(503);
    expect(text).toContain('guard_shutdown');
  });

  it('serves the metrics of its registry under the names of the dashboards', async () => {
    const registry = createMetricsRegistry('worker');
    const metrics = createWorkerMetrics(registry);
    metrics.tallyOf('m').inFlight = 3;
    const server = await start({ registry });
    const { text } = await get(server, '/metrics');
    expect(text).toMatch(/^model_inflight_requests\{model="m",process="worker"\} 3$/m);
    expect(text).toContain('nodejs_eventloop_lag_seconds');
  });

  it('names the setting to change if its port is in use', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(start({ port, portSetting: 'worker.observability_port' })).rejects.toMatchObject({
      code: 'port_in_use',
      message: `port ${port} is already in use: stop the process that listens on it, or set worker.observability_port to a free port`,
    });
    await new Promise((resolve) => other.close(resolve));
  });

  it('answers only requests for its own name, and none from foreign pages', async () => {
    const server = await start({
      originCheck: originCheck(apiOriginRules(configSchema.parse({})), '127.0.0.1'),
    });
    const ask = (headers: Record<string, string>) =>
      new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
        const request = httpRequest(`${server.url}/metrics`, { headers }, (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => (text += chunk.toString()));
          response.on('end', () => resolve({ status: response.statusCode, text }));
        });
        request.on('error', reject).end();
      });
    expect((await ask({})).status).toBe(200);
    expect((await ask({ host: 'localhost' })).status).toBe(200);
    for (const headers of [
      { host: 'rebound.example' },
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      const { status, text } = await ask(headers);
      expect(status).toBe(403);
      expect(JSON.parse(text)).toMatchObject({ error: { type: 'invalid_request_error' } });
    }
  });

  it('does not reveal internal errors in responses', async () => {
    const registry = createMetricsRegistry('worker');
    registry.metrics = () => Promise.reject(new Error('password of postgres://u:p@db'));
    const errors: unknown[] = [];
    const logger = { error: (fields: unknown) => errors.push(fields) };
    const server = await start({ registry, logger: logger as unknown as Logger });
    expect(await get(server, '/metrics')).toEqual({ status: 500, text: '{"status":"error"}' });
    expect(errors).toMatchObject([{ path: '/metrics', err: expect.any(Error) }]);
  });
});

it('appends the series of a library to its own, and leaves them out while they cannot be read', async () => {
  const errors: unknown[] = [];
  const pages = [Promise.resolve('of_a_library 1\n'), Promise.reject(new Error('closed'))];
  pages[1]?.catch(() => undefined);
  const server = await start({
    foreignMetrics: () => pages.shift() as Promise<string>,
    logger: { error: (error: unknown) => void errors.push(error) } as unknown as Logger,
  });
  const { text } = await get(server, '/metrics');
  expect(text).toMatch(/process_cpu[^]*\nof_a_library 1\n$/);
  const later = await get(server, '/metrics');
  expect(later).toMatchObject({ status: 200, text: expect.not.stringContaining('of_a_library') });
  expect(later.text).toContain('process_cpu');
  expect(errors).toHaveLength(1);
});
