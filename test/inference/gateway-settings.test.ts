import { createRegistry, type Registry } from '../../inference/registry';
import { configSchema } from '../../platform/config-schema';
import { requestOf, startLocalServer, until, type Answer, type LocalServer } from './local-server';
import { sendTo } from '../support/promises-of-sending';

const never = new AbortController().signal;

let server: LocalServer;
let registry: Registry;
afterEach(async () => {
  await registry.close();
  await server.close();
});

async function open(answer: Answer, settings: Record<string, unknown>): Promise<Registry> {
  server = await startLocalServer(answer);
  const gateway = {
    url: server.url,
    request_timeout: '10s',
    max_retries: 0,
    initial_backoff: '1s',
    max_backoff: '3s',
  };
  registry = createRegistry(configSchema.parse({ global_inference_gateway: gateway, ...settings }));
  return registry;
}

it('refuses answers larger than limits.max_answer_bytes', async () => {
  const { route } = await open(
    (request, response) => response.end(Buffer.alloc(Number(request.headers['x-bytes']), 'a')),
    { limits: { max_answer_bytes: '1KiB' } },
  );
  const send = (bytes: number) =>
    sendTo(route('m')!.backend, requestOf({ headers: { 'x-bytes': String(bytes) } }), never);
  expect(await send(1024)).toMatchObject({ status: 200 });
  expect(await send(1025)).toMatchObject({ kind: 'failure', reason: 'too_large' });
});

it('opens no more connections than concurrency.global', async () => {
  const held: (() => void)[] = [];
  const { route } = await open((_request, response) => held.push(() => response.end('{}')), {
    concurrency: { global: 3, per_model: 3 },
  });
  const { backend } = route('m')!;
  const sends = Array.from({ length: 9 }, () => sendTo(backend, requestOf(), never));
  let most = 0;
  for (let answered = 0; answered < 9; answered++) {
    await until(() => held.length > 0);
    most = Math.max(most, held.length);
    held.shift()?.();
  }
  await Promise.all(sends);
  expect(most).toBeLessThanOrEqual(3);
  expect(server.connections()).toBeLessThanOrEqual(3);
});

it('probes a gateway that is down after initial_backoff first, then at most every max_backoff', async () => {
  const { route } = await open((_request, response) => response.end('{}'), {});
  const breaker = route('m')?.breaker;
  for (let i = 0; i < 5; i++) {
    breaker?.onFailure({ lineId: `l${i}`, kind: 503, nowMs: i * 2_500 });
  }
  const pauses = [];
  for (let nowMs = 10_000; pauses.length < 4;) {
    const retryAtMs = breaker?.retryAtMs ?? 0;
    pauses.push(retryAtMs - nowMs);
    nowMs = retryAtMs;
    expect(breaker?.admit(nowMs)).toBe('probe');
    breaker?.onFailure({ lineId: 'p', kind: 503, nowMs, probe: true });
  }
  expect(pauses).toEqual([1_000, 2_000, 3_000, 3_000]);
});
