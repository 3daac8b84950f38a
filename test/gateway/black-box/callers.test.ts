import { closeOutside, Outside, poolOf, refusal, ScriptedBackend, TOKEN } from './outside';

let backend: ScriptedBackend;
let header: Outside;
let keys: Outside;

beforeAll(async () => {
  backend = await ScriptedBackend.start(({ response }) => response.end('{}'));
  const pools = poolOf('m', [backend]);
  header = await Outside.start({
    auth: { mode: 'header' },
    gateway: { pools, tenants: { vip: { max_band: 'critical' }, poor: { max_band: 'sheddable' } } },
  });
  keys = await Outside.start({
    auth: { mode: 'api_key' },
    // Nothing listens there: PostgreSQL is away.
    postgres: { url: 'postgres://nightshift@127.0.0.1:9/nightshift' },
    gateway: { pools },
  });
}, 60_000);
afterAll(closeOutside);

const tenant = (name: string) => ({ 'x-maas-username': name });
const objective = (name: string) => ({ 'x-gateway-inference-objective': name });

/** The band in which one request was sent. */
async function bandOf(fields: Record<string, string>, body = {}): Promise<string> {
  const before = (await header.pool('m')).bands;
  await header.ask('m', 'r', fields, body).answer;
  const after = (await header.pool('m')).bands;
  const bands = ['critical', 'standard', 'sheddable'] as const;
  return bands
    .filter((band) => after[band].dispatched['bypass'] !== before[band].dispatched['bypass'])
    .join();
}

describe('the band', () => {
  it.each([
    ['standard', 'without a choice', tenant('vip'), {}],
    ['critical', 'by the objective', { ...tenant('vip'), ...objective('realtime') }, {}],
    ['sheddable', 'by the objective of batches', { ...tenant('vip'), ...objective('batch') }, {}],
    ['critical', 'by service_tier: priority', tenant('vip'), { service_tier: 'priority' }],
    ['sheddable', 'by service_tier: flex', tenant('vip'), { service_tier: 'flex' }],
    [
      'sheddable',
      'by the objective before service_tier',
      { ...tenant('vip'), ...objective('batch') },
      { service_tier: 'priority' },
    ],
    ['standard', 'for an unknown objective', { ...tenant('vip'), ...objective('whatever') }, {}],
    ['standard', 'without the right to more', { ...tenant('plain'), ...objective('realtime') }, {}],
    [
      'sheddable',
      'of a tenant that may have no other',
      tenant('poor'),
      { service_tier: 'priority' },
    ],
    [
      'sheddable',
      'of a line, whatever it asks for',
      { ...tenant('w'), authorization: `Bearer ${TOKEN}`, ...objective('realtime') },
      {},
    ],
  ])('is %s %s', async (band, _what, fields, body) => {
    expect(await bandOf(fields, body)).toBe(band);
  });
});

describe('auth.mode: header', () => {
  it('wants the tenant', async () => {
    expect(await refusal(header.ask('m', 'nobody'))).toMatchObject({ status: 401, dropped: null });
  });

  it('refuses two tenants', async () => {
    const wire = header.wire(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n' +
        'x-maas-username: a\r\nX-MaaS-Username: b\r\ncontent-length: 13\r\n\r\n{"model":"m"}',
    );
    expect(await wire.status()).toBe(400);
  });

  it('passes the authorization of the client on, but never the token of workers', async () => {
    const seen: unknown[] = [];
    backend.script = ({ request, response }) => {
      seen.push(request.headers.authorization);
      response.end('{}');
    };
    await header.ask('m', 'own', { ...tenant('a'), authorization: 'Bearer own-key' }).answer;
    const line = header.line('m', 'line', 'a', tenant('workers'));
    expect((await line.answer).status).toBe(200);
    expect(seen).toEqual(['Bearer own-key', undefined]);
    expect(line.interim).toEqual([102]);
  });

  it('tells only workers of the dispatch', async () => {
    const asked = header.ask('m', 'user', tenant('a'));
    await asked.answer;
    expect(asked.interim).toEqual([]);
  });
});

describe('auth.mode: api_key, while PostgreSQL is away', () => {
  it('refuses requests without a key', async () => {
    expect(await refusal(keys.ask('m', 'none'))).toMatchObject({ status: 401, dropped: null });
  });

  it('cannot say whether a key is valid, and does not say that it is wrong', async () => {
    const fields = { authorization: `Bearer nsk_0123456789abcdef_${'a'.repeat(43)}` };
    expect((await keys.ask('m', 'unknown', fields).answer).status).toBe(503);
  });

  it('serves workers', async () => {
    expect((await keys.line('m', 'line', 'a').answer).status).toBe(200);
  });

  it('takes no token that only begins like that of workers', async () => {
    for (const token of [TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase()]) {
      const { status } = await keys.ask('m', 'guess', { authorization: `Bearer ${token}` }).answer;
      expect([401, 503]).toContain(status);
    }
  });
});
