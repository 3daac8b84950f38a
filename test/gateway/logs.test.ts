import pino from 'pino';
import { BAND } from '../../core/dispatch/queue/band';
import { buildGateway } from '../../gateway/app';
import { openAudio } from '../../gateway/audio/open-audio';
import { CallerKeys } from '../../gateway/caller-keys';
import { openPools } from '../../gateway/pools/open-pools';
import { BodyRoom } from '../../gateway/requests/body-room';
import { type Fault, FaultLog } from '../../gateway/requests/fault-log';
import { loadConfig } from '../../platform/config';
import { createGatewayMetrics } from '../../platform/gateway-metrics';
import { createMetricsRegistry } from '../../platform/metrics';
import { until } from '../support/until';
import {
  ask,
  type Backend,
  closeAll,
  FALLS_AT_ONCE,
  ONE_IN_FLIGHT,
  startBackend,
  untilHeld,
} from './gateway-fixtures';

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const log: LogLine[] = [];
const logger = pino(
  { level: 'info', base: null, timestamp: false, formatters: { level: (level) => ({ level }) } },
  { write: (line) => void log.push(JSON.parse(line) as LogLine) },
);
const closers: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  log.length = 0;
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await closeAll();
});

const FAULT: Fault = {
  ...{ code: 'queue_ttl_expired', band: BAND.standard, requestId: 'r1', tenant: 'acme' },
  ...{ model: 'm', pool: 'main', waitedMs: 30_000.4, backend: null, reason: null },
};

describe('the log of requests that are not served', () => {
  it('has the first one of a kind in 10 s, and then how many more there were', () => {
    const faults = new FaultLog(logger);
    for (let i = 1; i <= 1_000; i++) faults.log({ ...FAULT, requestId: `r${i}` });
    expect(log).toEqual([
      {
        ...{ level: 'warn', msg: 'request not served', pool: 'main', band: 'standard' },
        ...{ code: 'queue_ttl_expired', requestId: 'r1', tenant: 'acme', model: 'm' },
        waitedMs: 30_000,
      },
    ]);
    faults.flush();
    expect(log.slice(1)).toEqual([
      {
        ...{ level: 'warn', msg: 'more requests not served', pool: 'main', band: 'standard' },
        ...{ code: 'queue_ttl_expired', count: 999 },
      },
    ]);
    faults.flush();
    faults.log({ ...FAULT, requestId: 'later' });
    expect(log.slice(2)).toMatchObject([{ msg: 'request not served', requestId: 'later' }]);
  });

  it('separates pools, bands, codes and backends', () => {
    const faults = new FaultLog(logger);
    faults.log(FAULT);
    faults.log({ ...FAULT, pool: 'second' });
    faults.log({ ...FAULT, band: BAND.critical });
    faults.log({ ...FAULT, code: 'no_backends' });
    faults.log({ ...FAULT, backend: 'http://b' });
    expect(log).toHaveLength(5);
  });

  it.each([
    ['warn', { code: 'queue_ttl_expired' }],
    ['info', { code: 'queue_ttl_expired', band: BAND.sheddable }],
    ['warn', { code: 'backend_lost', band: BAND.sheddable, backend: 'http://b', reason: 'reset' }],
    ['info', { code: 'shutting_down' }],
  ] as const)('is at the level %s for %j', (level, change) => {
    new FaultLog(logger).log({ ...FAULT, ...change });
    expect(log).toMatchObject([{ level, ...change, band: expect.any(String) as string }]);
  });

  it('has no clients that hung up', () => {
    new FaultLog(logger).log({ ...FAULT, code: 'client_closed' });
    expect(log).toEqual([]);
  });
});

/** A gateway that logs into `log`. */
async function startLogged(backends: readonly Backend[], settings: Record<string, unknown> = {}) {
  const config = loadConfig({
    env: {},
    needs: ['pools'],
    overrides: {
      gateway: {
        pools: {
          main: {
            models: ['m'],
            backends: backends.map(({ url }) => ({ url })),
            probe: { interval: '20ms', ...FALLS_AT_ONCE },
          },
        },
        ...settings,
      },
    },
  });
  const now = () => performance.now();
  const pools = openPools({ config, logger, now });
  closers.push(() => pools.close());
  const metrics = createGatewayMetrics(createMetricsRegistry('gateway'));
  const onClose = (_name: string, close: () => Promise<void>) => void closers.push(close);
  const { routes: audio } = await openAudio({
    config,
    metrics: metrics.audio,
    logger,
    onClose,
    now,
  });
  const app = buildGateway({
    ...{ audio, config, pools: pools.table, metrics, tracing: null, logger, now },
    bodyRoom: new BodyRoom({ bytes: 1e6, sheddableBytes: 1e6, slowAfterMs: 1e6, now: () => 0 }),
    faults: new FaultLog(logger),
    authenticator: new CallerKeys(async () => null, now),
    isWorkerToken: () => false,
    realtime: null,
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  closers.push(() => app.close());
  return { url };
}

function untilLogged(msg: string): Promise<unknown> {
  return until(() => log.some((line) => line.msg === msg), 5_000, msg, 5);
}

const named = (msg: string) => log.filter((line) => line.msg === msg);

it('logs the pools, and each change of a backend with its reason', async () => {
  const backend = await startBackend((_request, response) => response.end('{}'));
  backend.health = 503;
  await startLogged([backend]);
  await untilLogged('backend not ready');
  const probes = () => backend.received.filter(({ url }) => url === '/health').length;
  const before = probes();
  await until(() => probes() > before + 3, 5_000, 'further probes', 5);
  backend.health = 200;
  await untilLogged('backend ready');
  expect(log).toEqual([
    {
      ...{ level: 'info', msg: 'pool', pool: 'main', models: ['m'] },
      ...{ backends: [backend.url], bounds: 'learnt' },
    },
    {
      ...{ level: 'warn', msg: 'backend not ready', pool: 'main', backend: backend.url },
      reason: 'the probe got status 503',
    },
    { level: 'info', msg: 'backend ready', pool: 'main', backend: backend.url },
  ]);
});

it('logs requests that are not served with their ids, without bodies and keys', async () => {
  const backend = await startBackend();
  const queue = { fair_request_queue: { queue_ttl: '100ms' } };
  const gateway = await startLogged([backend], { ...ONE_IN_FLIGHT, ...queue });
  await untilLogged('backend ready');
  const secrets = { authorization: 'Bearer secret-key' };
  const body = { messages: [{ role: 'user', content: 'secret-prompt' }] };
  const cut = ask(gateway, body, { ...secrets, 'x-request-id': 'cut' });
  await untilHeld(backend, 1);
  expect((await ask(gateway, body, { ...secrets, 'x-request-id': 'late' }).answer).status).toBe(
    503,
  );
  backend.held[0]?.response.writeHead(200).write('a piece');
  await cut.head;
  backend.held[0]?.response.destroy();
  await expect(cut.answer).rejects.toThrow();
  await until(() => named('request not served').length === 2, 5_000, 'two faults', 5);
  expect(named('request not served')).toMatchObject([
    { requestId: 'late', code: 'queue_ttl_expired', pool: 'main', model: 'm', band: 'standard' },
    { requestId: 'cut', code: 'answer_cut', backend: backend.url, level: 'warn' },
  ]);
  expect(named('request not served')[1]?.['reason']).toEqual(expect.any(String));
  expect(JSON.stringify(log)).not.toContain('secret');
});
