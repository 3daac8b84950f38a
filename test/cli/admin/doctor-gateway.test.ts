import { gatewayChecks } from '../../../cli/admin/doctor-gateway';
import type { CheckResult } from '../../../cli/admin/doctor-result';
import { heldFindings } from '../../../cli/admin/held-settings';
import { configSchema, type GatewayConfig } from '../../../platform/config-schema';
import type { FlowPagePool } from '../../../platform/flow-page';
import { startAudioGateway, startWorker } from '../../gateway/audio/audio-fixtures';
import { closeAll, startBackend, startGateway } from '../../gateway/gateway-fixtures';
import { until } from '../../support/until';

afterEach(closeAll);

const MINUTE_MS = 60_000;

interface Setting {
  readonly timeoutMs?: number;
  readonly ttlMs?: number;
  readonly permits?: number;
  readonly sheddableCapacity?: number;
  readonly inFlightBytes?: string;
}

/** A worker before a pool with two backends that take 40 requests each. */
function findings(setting: Setting) {
  const { timeoutMs = 6 * MINUTE_MS, ttlMs = MINUTE_MS, permits = 160 } = setting;
  const { sheddableCapacity = 900, inFlightBytes = '128MiB' } = setting;
  const { concurrency } = configSchema.parse({
    concurrency: { global: permits, per_model: permits, in_flight_bytes: inFlightBytes },
  });
  const pool = {
    name: 'main',
    bounds: { mode: 'learnt', lower: 80, watermark: 80, upper: 80 },
    limits: {
      request_timeout_ms: 5 * MINUTE_MS,
      batch_queue_ttl_ms: ttlMs,
      sheddable_capacity: sheddableCapacity,
    },
    backends: [{ limit: 40 }, { limit: 40 }],
  } as unknown as FlowPagePool;
  return heldFindings({ url: 'http://g', request_timeout: timeoutMs }, { concurrency }, [pool]);
}

it('the doctor finds nothing wrong with the settings that the documentation recommends', () => {
  expect(findings({})).toEqual({ errors: [], warnings: [] });
});

it.each<[string, Setting, RegExp]>([
  ['fewer permits than twice the pool', { permits: 100 }, /with fewer than 2 workers, raise/],
  [
    'more permits than the pool holds',
    { permits: 120, sheddableCapacity: 30 },
    /lower concurrency.per_model, or raise sheddable_capacity/,
  ],
  ['a timeout that a slow answer uses up', { timeoutMs: 5.5 * MINUTE_MS }, /raise it to 6m/],
  ['too little memory for all permits', { inFlightBytes: '40MiB' }, /raise it to at least 43MiB/],
])('the doctor warns of %s', (_, setting, text) => {
  const { errors, warnings } = findings(setting);
  expect([errors, warnings]).toEqual([[], [expect.stringMatching(text)]]);
});

it('the doctor refuses a time in the queue that costs lines their tries', () => {
  const { errors } = findings({ ttlMs: 3 * MINUTE_MS });
  expect(errors).toEqual([expect.stringMatching(/must be more than twice batch_queue_ttl.*3m/)]);
});

describe('the doctor of a worker', () => {
  function checksOf(gateway: Partial<Record<keyof GatewayConfig, unknown>>, adminPort = 1) {
    const config = configSchema.parse({
      global_inference_gateway: { send_fairness_header: true, request_timeout: '6m', ...gateway },
      gateway: { observability_port: adminPort },
      concurrency: { global: 100, per_model: 100 },
    });
    return gatewayChecks(config);
  }

  it('compares it with the page of its gateway', async () => {
    const gateway = await startGateway([await startBackend()]);
    const [check] = checksOf({ url: gateway.url }, Number(new URL(gateway.adminUrl).port));
    expect(await check?.run()).toMatch(/^the settings of this worker fit http/);
    const [short] = checksOf(
      { url: gateway.url, request_timeout: '90s' },
      Number(new URL(gateway.adminUrl).port),
    );
    await expect(short?.run()).rejects.toThrow(/request_timeout \(1.5m\) must be more than twice/);
  });

  it('looks at the audio workers of its gateway', async () => {
    const worker = await startWorker();
    const gateway = await startAudioGateway([worker]);
    const port = Number(new URL(gateway.adminUrl).port);
    const audioCheck = (changes: object = {}) =>
      checksOf({ url: gateway.url, ...changes }, port).find(({ name }) => name === 'audio');
    expect(await audioCheck()?.run()).toMatch(/^1 audio workers of http.* serve$/);
    await expect(audioCheck({ audio_request_timeout: '3m' })?.run()).rejects.toThrow(
      /audio_request_timeout \(3m\) must be more than twice .*batch_queue_ttl \(2m\)/,
    );
    worker.server.kill();
    const isWarned = async () => {
      const result = (await audioCheck()?.run()) as CheckResult;
      return result.isWarning === true && result.text;
    };
    const text = await until(isWarned, 20_000, 'a warning');
    expect(text).toMatch(/the audio worker 127.0.0.1:\d+ gets no calls: unreachable/);
  });

  it('says that the page of the gateway cannot be read', async () => {
    const [check] = checksOf({ url: 'http://127.0.0.1:1' });
    const result = (await check?.run()) as CheckResult;
    expect(result).toMatchObject({ isOk: true, isWarning: true });
    expect(result.text).toContain('shows no /admin/flow here');
  });

  it('checks nothing for gateways that do not divide their service among tenants', () => {
    expect(checksOf({ url: 'http://127.0.0.1:1', send_fairness_header: false })).toEqual([]);
  });
});
