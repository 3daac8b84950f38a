import { until } from '../support/until';
import { chat, get, metric, post, put, start, stopSimulators } from './simulators';

afterEach(stopSimulators);

const CHAT = '/v1/chat/completions';
/** One slot that is busy for minutes. */
const SLOW = { slots: 1, maxQueue: 1, stepBaseMs: 1_000, outputTokens: 500 };
const FAST = { slots: 4, stepBaseMs: 1, stepGrowthMs: 0, prefillMsPerToken: 0 };

async function untilMetric(url: string, series: string, value: number): Promise<void> {
  const reached = async (): Promise<true | null> =>
    (await metric(url, series)) === value ? true : null;
  await until(reached, 5_000, `${series} to be ${value}`);
}

interface Usage {
  readonly usage: { readonly completion_tokens: number; readonly prompt_tokens_details: unknown };
}

async function usageOf(url: string, extra: Record<string, unknown> = {}): Promise<Usage['usage']> {
  return ((await (await post(url, CHAT, chat(extra))).json()) as Usage).usage;
}

describe('a simulator with an engine', () => {
  it('queues requests, refuses those beyond with 429, and frees the slot of a client that goes away', async () => {
    const url = await start({ ...SLOW, retryAfterSec: 7 });
    const clients = [new AbortController(), new AbortController()];
    const ended = clients.map(async ({ signal }) => {
      await expect(
        post(url, CHAT, chat({ stream: true }), { signal }).then((r) => r.text()),
      ).rejects.toThrow();
    });
    await untilMetric(url, 'vllm:num_requests_waiting', 1);
    expect(await metric(url, 'vllm:num_requests_running')).toBe(1);
    const refused = await post(url, CHAT, chat());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
    expect(await refused.json()).toMatchObject({ error: { type: 'rate_limit_error' } });
    clients[0]!.abort();
    await untilMetric(url, 'vllm:num_requests_waiting', 0);
    expect(await metric(url, 'vllm:num_requests_running')).toBe(1);
    clients[1]!.abort();
    await untilMetric(url, 'vllm:num_requests_running', 0);
    await Promise.all(ended);
    expect(await get(url, '/simulator/stats')).toMatchObject({ aborted: 2, in_flight: 0 });
  });

  it('reports the cached tokens of each request, and keeps models apart', async () => {
    const url = await start(FAST);
    const cached = async (extra?: Record<string, unknown>): Promise<unknown> =>
      (await usageOf(url, extra)).prompt_tokens_details;
    expect(await cached()).toEqual({ cached_tokens: 0 });
    expect(await cached({ max_tokens: 3 })).toEqual({ cached_tokens: 16 });
    expect(await cached({ model: 'other' })).toEqual({ cached_tokens: 0 });
    expect(await metric(url, 'vllm:prefix_cache_queries_total')).toBe(3 * 19);
    expect(await metric(url, 'vllm:prefix_cache_hits_total')).toBe(16);
    await put(url, { cache_tokens: 0 });
    expect(await cached()).toEqual({ cached_tokens: 0 });
  });

  it('takes longer for more requests at once', async () => {
    const url = await start({ ...FAST, stepBaseMs: 0, stepGrowthMs: 5, outputTokens: 4 });
    const took = async (count: number): Promise<number> => {
      const began = performance.now();
      await Promise.all(Array.from({ length: count }, () => usageOf(url)));
      return performance.now() - began;
    };
    expect(await took(1)).toBeGreaterThanOrEqual(4 * 5 - 1);
    expect(await took(4)).toBeGreaterThanOrEqual(3 * 20);
  });

  it('answers embeddings after their prefill', async () => {
    const url = await start(FAST);
    const answer = await post(url, '/v1/embeddings', { model: 'm', input: ['a', 'b'] });
    expect(await answer.json()).toMatchObject({ data: [{ index: 0 }, { index: 1 }] });
  });

  it('gives answers lognormal lengths if it has a spread, the same ones each time', async () => {
    const lengths = async (): Promise<number[]> => {
      const url = await start({ outputTokens: 50, outputSigma: 1, seed: 3 });
      const all = Array.from({ length: 20 }, (_, i) => usageOf(url, { user: `u${i}` }));
      return (await Promise.all(all)).map(({ completion_tokens: tokens }) => tokens);
    };
    const first = await lengths();
    expect(await lengths()).toEqual(first);
    expect(new Set(first).size).toBeGreaterThan(10);
  });
});

describe('faults of a whole simulator', () => {
  it.each([
    ['with an engine', FAST],
    ['with a fixed latency', { latencyMs: 1 }],
  ])('%s: a stall holds requests back until it ends', async (_, options) => {
    const url = await start({ ...options, stall: true });
    let isOver = false;
    const answer = post(url, CHAT, chat()).then((response) => {
      isOver = true;
      return response.status;
    });
    await untilMetric(url, 'vllm:num_requests_running', 1);
    expect(isOver).toBe(false);
    await put(url, { stall: false });
    expect(await answer).toBe(200);
  });

  it('a slowdown makes everything take longer', async () => {
    const url = await start({ ...FAST, outputTokens: 4, slowdown: 10 });
    const began = performance.now();
    await usageOf(url);
    expect(performance.now() - began).toBeGreaterThanOrEqual(39);
  });

  it('a server that is not ready answers 503, also for its health', async () => {
    const url = await start({ notReady: true });
    expect((await fetch(`${url}/health`)).status).toBe(503);
    expect((await post(url, CHAT, chat())).status).toBe(503);
    await put(url, { not_ready: false });
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await post(url, CHAT, chat())).status).toBe(200);
  });

  it('a server that refuses closes every connection, except those that change its settings', async () => {
    const url = await start({ refuse: true });
    await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed');
    await expect(post(url, CHAT, chat())).rejects.toThrow('fetch failed');
    await put(url, { refuse: false });
    expect((await post(url, CHAT, chat())).status).toBe(200);
  });
});

it('the metrics have the names and labels of vLLM', async () => {
  const url = await start({ ...FAST, models: ['m'], outputTokens: 5 });
  await usageOf(url);
  await usageOf(url, { max_tokens: 2 });
  const labels = 'model_name="m",engine="0"';
  expect(await metric(url, `vllm:generation_tokens_total{${labels}}`)).toBe(7);
  expect(await metric(url, `vllm:prompt_tokens_total{${labels}}`)).toBe(2 * 19);
  expect(await metric(url, `vllm:request_success_total{finished_reason="stop",${labels}}`)).toBe(1);
  expect(await metric(url, `vllm:request_success_total{finished_reason="length",${labels}}`)).toBe(
    1,
  );
  expect(await metric(url, `vllm:time_to_first_token_seconds_count{${labels}}`)).toBe(2);
  expect(await metric(url, `vllm:e2e_request_latency_seconds_count{${labels}}`)).toBe(2);
  expect(await metric(url, `vllm:kv_cache_usage_perc{${labels}}`)).toBe(0);
});
