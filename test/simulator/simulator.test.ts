import OpenAI from 'openai';
import { startSimulator } from '../../simulator/main';
import { chat, get, post, put, start, stopSimulators } from './simulators';

afterEach(stopSimulators);

describe('the model endpoints of the simulator', () => {
  it('work with the official OpenAI client', async () => {
    const client = new OpenAI({ baseURL: `${await start()}/v1`, apiKey: 'none', maxRetries: 0 });
    const completion = await client.chat.completions.create(chat({ max_tokens: 5 }) as never);
    expect(completion.choices[0]).toMatchObject({ index: 0, finish_reason: 'length' });
    expect(completion.choices[0]!.message.content!.split(' ')).toHaveLength(5);
    const legacy = await client.completions.create({ model: 'm', prompt: ['a', 'b'] });
    expect(legacy.choices.map(({ index }) => index)).toEqual([0, 1]);
    const response = await client.responses.create({ model: 'm', input: 'hi', instructions: 'be' });
    expect(response.output_text.split(' ')).toHaveLength(16);
    expect(response.status).toBe('completed');
    const floats = await client.embeddings.create({
      model: 'm',
      input: ['a', 'b'],
      dimensions: 3,
      encoding_format: 'float',
    });
    const encoded = await client.embeddings.create({
      model: 'm',
      input: ['a', 'b'],
      dimensions: 3,
    });
    expect(floats.data.map(({ embedding }) => embedding.length)).toEqual([3, 3]);
    for (const [index, { embedding }] of encoded.data.entries()) {
      expect(Math.hypot(...embedding)).toBeCloseTo(1);
      expect(embedding[0]).toBeCloseTo(floats.data[index]!.embedding[0]!);
    }
    const moderation = await client.moderations.create({ input: ['x', 'y'] });
    expect(moderation.results.map(({ flagged }) => flagged)).toEqual([false, false]);
    expect((await client.models.list()).data).toHaveLength(1);
  });

  it.each([
    ['/v1/chat/completions', chat(), chat({ user: 'u' })],
    ['/v1/completions', { model: 'm', prompt: 'p' }, { model: 'm', prompt: 'q' }],
    ['/v1/embeddings', { model: 'm', input: 'i' }, { model: 'm', input: 'j' }],
    ['/v1/responses', { model: 'm', input: 'i' }, { model: 'm', input: 'j' }],
    ['/v1/moderations', { input: 'i' }, { input: 'j' }],
  ])(
    'give equal requests to %s equal answers, and other requests other answers',
    async (path, body, other) => {
      const url = await start();
      const send = async (sent: object) => (await post(url, path, sent)).text();
      const first = await send(body);
      expect(await send(body)).toBe(first);
      expect(await send(other)).not.toBe(first);
    },
  );

  it('report usage with the cached blocks of the system prompt', async () => {
    const answer = await post(await start(), '/v1/chat/completions', chat());
    expect(((await answer.json()) as { usage: unknown }).usage).toEqual({
      prompt_tokens: 19,
      completion_tokens: 16,
      total_tokens: 35,
      prompt_tokens_details: { cached_tokens: 16 },
      completion_tokens_details: { reasoning_tokens: 0 },
    });
  });

  it('refuse malformed requests with errors in the form of OpenAI', async () => {
    const url = await start({ models: ['known'] });
    const refusals = [
      ['{', 400, { param: null }],
      ['[]', 400, { param: null }],
      [JSON.stringify({ messages: [] }), 400, { param: 'model' }],
      [JSON.stringify({ model: 'known', messages: [] }), 400, { param: 'messages' }],
      [JSON.stringify({ ...chat(), stream_options: {} }), 400, { param: 'stream_options' }],
      [
        JSON.stringify({ ...chat(), stream: true, stream_options: 1 }),
        400,
        { param: 'stream_options' },
      ],
      [JSON.stringify(chat()), 404, { param: 'model', code: 'model_not_found' }],
      [
        JSON.stringify({ ...chat(), model: 'known', simulate: { stats: 1 } }),
        400,
        { param: 'simulate' },
      ],
    ] as const;
    for (const [body, status, error] of refusals) {
      const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body });
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({
        error: { type: 'invalid_request_error', message: expect.any(String), ...error },
      });
    }
    expect((await fetch(`${url}/v1/nothing`)).status).toBe(404);
    const streamed = await post(url, '/v1/responses', { model: 'm', input: 'i', stream: true });
    expect([streamed.status, await streamed.json()]).toMatchObject([
      400,
      { error: { param: 'stream' } },
    ]);
  });
});

describe('simulated faults', () => {
  it('have the status, delay and Retry-After that the request names', async () => {
    const url = await start();
    const began = performance.now();
    const body = chat({ simulate: { status: 503, delay_ms: 60, retry_after_sec: 2 } });
    const response = await post(url, '/v1/chat/completions', body);
    expect(performance.now() - began).toBeGreaterThanOrEqual(55);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await response.json()).toMatchObject({ error: { type: 'server_error' } });
  });

  it('can be limited to the first tries of a request', async () => {
    const url = await start();
    const body = chat({ simulate: { status: 429, times: 2 } });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      statuses.push(
        (await post(url, '/v1/chat/completions', body, { requestId: 'line-1' })).status,
      );
    }
    expect(statuses).toEqual([429, 429, 200]);
    expect(await get(url, '/simulator/stats')).toMatchObject({ requests: 3, repeated: 2 });
  });

  it('can close the connection', async () => {
    const url = await start();
    const body = chat({ simulate: { drop: true } });
    await expect(post(url, '/v1/chat/completions', body)).rejects.toThrow('fetch failed');
    expect(await get(url, '/simulator/stats')).toMatchObject({ aborted: 1, in_flight: 0 });
  });
});

describe('a running simulator', () => {
  it('shows its settings and accepts changes of all or some', async () => {
    const url = await start();
    const before = await get(url, '/simulator/config');
    expect(before).toMatchObject({ latency_ms: 0, error_rate: 0, models: [] });
    const changed = await put(url, { output_tokens: 2, error_rate: 1 });
    expect(await changed.json()).toEqual({ ...before, output_tokens: 2, error_rate: 1 });
    expect((await post(url, '/v1/chat/completions', chat())).status).toBe(500);
    await put(url, { error_rate: 0 });
    const answer = await post(url, '/v1/chat/completions', chat());
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 2 } });
  });

  it('refuses unknown settings and values out of range, and keeps the old ones', async () => {
    const url = await start();
    const before = await get(url, '/simulator/config');
    for (const settings of [
      { latencyMs: 1 },
      { error_rate: 2 },
      { output_tokens: 1.5 },
      [],
      { models: 'm' },
      { stall: 1 },
      { slowdown: 0.5 },
    ]) {
      expect((await put(url, settings)).status).toBe(400);
    }
    expect(await get(url, '/simulator/config')).toEqual(before);
  });

  it('answers 429 above its concurrency limit', async () => {
    const url = await start({ latencyMs: 100, maxConcurrency: 2, retryAfterSec: 3 });
    const responses = await Promise.all(
      [1, 2, 3, 4].map(() => post(url, '/v1/chat/completions', chat())),
    );
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(['3', '3']);
    expect(await get(url, '/simulator/stats')).toMatchObject({
      requests: 4,
      in_flight: 0,
      max_in_flight: 3,
      by_status: { 200: 2, 429: 2 },
      by_endpoint: { '/v1/chat/completions': 4 },
      by_model: { m: 2 },
      output_tokens: 32,
    });
  });

  it('counts aborted requests and drops them', async () => {
    const url = await start({ latencyMs: 60_000 });
    const controller = new AbortController();
    const body = JSON.stringify(chat());
    const { signal } = controller;
    const asked = fetch(`${url}/v1/chat/completions`, { method: 'POST', body, signal });
    while ((await get(url, '/simulator/stats'))['in_flight'] === 0);
    controller.abort();
    await expect(asked).rejects.toThrow();
    while ((await get(url, '/simulator/stats'))['in_flight'] === 1);
    expect(await get(url, '/simulator/stats')).toMatchObject({ aborted: 1 });
  });
});

it('the simulator does not start on a port in use or with options out of range', async () => {
  const url = await start();
  const port = Number(new URL(url).port);
  await expect(startSimulator({ port })).rejects.toMatchObject({ code: 'port_in_use' });
  await expect(startSimulator({ port: 0, errorRate: -1 })).rejects.toThrow(
    'error_rate must be a number from 0 to 1',
  );
  expect(await get(url, '/health')).toEqual({ status: 'ok' });
});
