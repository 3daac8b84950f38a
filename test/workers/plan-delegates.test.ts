import { configSchema } from '../../platform/config-schema';
import type { BatchRow } from '../../storage/postgres/batches/types';
import { planDelegate } from '../../workers/plan-delegates';
import { type RouteSources, withProviders, withRoutes } from '../../workers/with-routes';

/** Which models go through a provider (docs/design/delegation.md#routing). */

const HOUR_SEC = 3_600;
const URL = 'http://127.0.0.1:1';
const GATEWAY = {
  ...{ url: URL, request_timeout: '5m', max_retries: 3 },
  ...{ initial_backoff: '1s', max_backoff: '60s' },
};

function configOf(delegate: object = {}, provider: object = {}, others: object = {}) {
  return configSchema.parse({
    providers: { far: { type: 'openai', url: URL, ...provider } },
    delegates: { m: { provider: 'far', ...delegate } },
    ...others,
  });
}

function rowOf(over: Partial<BatchRow> = {}): BatchRow {
  const times = { createdAtSec: 1_000_000, expiresAtSec: 1_000_000 + 24 * HOUR_SEC };
  const row = { endpoint: '/v1/chat/completions', tenant: 't', metadata: null, ...times };
  return { ...row, ...over } as BatchRow;
}

const queueOf = (provider: string) => `queue.${provider}`;
const model = { model: 'm', entries: 10, hasGateway: true };

it('is planned with its queue, and with a time to give up before the batch expires', () => {
  const planned = planDelegate(model, rowOf(), { config: configOf(), queueOf });
  expect(planned).toEqual({
    ...{ provider: 'far', queue: 'queue.far', fallback: false, harvestGraceMs: 720_000 },
    // A delegate without a gateway stops 15 minutes before the end.
    giveUpAtMs: (1_000_000 + 24 * HOUR_SEC - 900) * 1000,
  });
});

it('leaves its gateway time for what the provider does not answer', () => {
  const config = configOf({ fallback: 'gateway' }, {}, { model_gateways: { m: GATEWAY } });
  expect(planDelegate(model, rowOf(), { config, queueOf })).toMatchObject({
    fallback: true,
    giveUpAtMs: (1_000_000 + 20 * HOUR_SEC) * 1000,
  });
});

it.each<[string, Partial<BatchRow>, object, object]>([
  ['opts out', { metadata: { nightshift_delegate: 'never' } }, {}, {}],
  ['is of another tenant', { tenant: 'other' }, { tenants: ['t'] }, {}],
  ['has an endpoint that the provider lacks', { endpoint: '/v1/audio/speech' }, {}, {}],
])('sends no line of a batch that %s to the provider', (_, batch, delegate, provider) => {
  const settings = { config: configOf(delegate, provider), queueOf };
  expect(planDelegate(model, rowOf(batch), settings)).toBeNull();
  expect(planDelegate({ ...model, hasGateway: false }, rowOf(batch), settings)).toBeNull();
});

it.each<[string, object, object]>([
  ['a window that is too short', { min_window: '25h' }, {}],
  ['too few lines', {}, { min_lines: 11 }],
])('sends lines with %s to the provider only if there is no gateway', (_, delegate, provider) => {
  const settings = { config: configOf(delegate, provider), queueOf };
  expect(planDelegate(model, rowOf(), settings)).toBeNull();
  const alone = { ...model, hasGateway: false };
  expect(planDelegate(alone, rowOf(), settings)).toMatchObject({ provider: 'far' });
});

describe('the routes of a plan', () => {
  const ingested = { model: 'm', entries: 10, safeModel: 'm-safe' };
  const gateway = { queue: 'exec', requestTimeoutMs: 5_000 };

  function routed(hasGateway: boolean, over: Partial<RouteSources> = {}) {
    const routes = {
      isKnown: () => hasGateway,
      routeOf: () => (hasGateway ? gateway : null),
    } as unknown as RouteSources['routes'];
    const result = { kind: 'planned', models: [ingested] } as unknown as Parameters<
      typeof withRoutes
    >[0];
    const planned = withRoutes(result, { routes, config: configOf(), row: rowOf(), ...over });
    if (planned.kind !== 'planned') throw new Error('the plan is invalid');
    return planned.models[0];
  }

  it('name provider and gateway of a delegated model', () => {
    const delegate = { provider: 'far', queue: 'nightshift-delegate.far' };
    expect(routed(true)).toMatchObject({ safe: 'm-safe', ...gateway, delegate });
    expect(routed(false)).toMatchObject({ delegate });
  });

  it('name only the gateway for an excluded batch', () => {
    const planned = routed(true, { row: rowOf({ metadata: { nightshift_delegate: 'never' } }) });
    expect(planned).toEqual({ model: 'm', entries: 10, safe: 'm-safe', ...gateway });
  });

  it('leave a model undecided that has neither', () => {
    const planned = routed(false, { row: rowOf({ endpoint: '/v1/audio/speech' }) });
    expect(planned).toMatchObject({ undecided: true });
    expect(planned).not.toHaveProperty('delegate');
  });

  it.each([
    ['delegated', true],
    ['not delegated', false],
  ])('say that Temporal may be given the providers if a model is %s', async (_, isDelegated) => {
    const models = [isDelegated ? { ...ingested, delegate: {} } : ingested];
    const plan = { kind: 'planned', models } as unknown as Parameters<typeof withProviders>[0];
    const shown = await withProviders(plan, () => Promise.resolve(true));
    expect(shown).toEqual(isDelegated ? { ...plan, showsProviders: true } : plan);
    expect(await withProviders(plan, () => Promise.resolve(false))).toBe(plan);
  });

  it('pass an invalid file on as it is', () => {
    const invalid = { kind: 'invalid', errors: [] } as never;
    const sources = { routes: {}, config: configOf(), row: null } as unknown as RouteSources;
    expect(withRoutes(invalid, sources)).toBe(invalid);
  });
});
