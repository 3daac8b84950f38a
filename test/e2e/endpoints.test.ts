import { BadRequestError } from 'openai';
import type { LocalServer, Received } from '../inference/local-server';
import { startLocalServer } from '../inference/local-server';
import type { TestRequest } from './run-batch';
import { createBatch, inputLines, runRequests } from './run-batch';
import type { TestStack } from '../support/stack';
import { STACK_START_MS, startStack, untilTerminal } from '../support/stack';

const IMAGES = '/v1/images/generations';
const OWN = '/v1/rerank';
const DEFAULTS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/moderations',
];

let server: LocalServer;
let stack: TestStack;
let reply: (body: Record<string, unknown>) => object = () => ({});

beforeAll(async () => {
  server = await startLocalServer(({ body }, response) => {
    const request = JSON.parse(body.toString()) as Record<string, unknown>;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ model: request['model'], ...reply(request) }));
  });
  stack = await startStack({
    config: {
      // Many users write the base URL as the SDKs expect it.
      global_inference_gateway: { url: `${server.url}/v1`, request_timeout: '10s', max_retries: 0 },
      batch: { endpoints: [...DEFAULTS, IMAGES, OWN], moderation_default_model: 'the-default' },
      limits: { max_requests: 20, max_inputs: 12 },
    },
  });
}, STACK_START_MS);
afterAll(async () => {
  await stack?.stop();
  stack?.remove();
  await server?.close();
}, 60_000);
beforeEach(() => {
  server.received.length = 0;
});

const sent = (): Received[] => server.received;
const three = (body: object): TestRequest[] =>
  [1, 2, 3].map((n) => ({ body: { model: 'm', user: `user ${n}`, ...body } }));

describe('a batch of each endpoint', () => {
  it.each([
    {
      endpoint: '/v1/chat/completions',
      body: { messages: [{ role: 'user', content: 'hello' }] },
      usage: {
        prompt_tokens: 11,
        completion_tokens: 5,
        total_tokens: 16,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
      sums: [33, 12, 15, 6, 48],
    },
    {
      endpoint: '/v1/completions',
      body: { prompt: ['one', 'two'] },
      usage: { prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 },
      sums: [9, 0, 21, 0, 30],
    },
    {
      endpoint: '/v1/embeddings',
      body: { input: [[1, 2, 3], 'text'] },
      usage: { prompt_tokens: 8, total_tokens: 8 },
      sums: [24, 0, 0, 0, 24],
    },
    {
      endpoint: '/v1/responses',
      body: { input: 'hello', instructions: 'be short' },
      usage: {
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 16 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 6 },
      },
      // If no total is reported, it is the sum of input and output.
      sums: [60, 48, 27, 18, 87],
    },
    { endpoint: '/v1/moderations', body: { input: 'hello' }, usage: null, sums: [0, 0, 0, 0, 0] },
    {
      endpoint: IMAGES,
      body: { prompt: 'a lighthouse' },
      usage: { input_tokens: 5, output_tokens: 100, total_tokens: 105 },
      sums: [15, 0, 300, 0, 315],
    },
    { endpoint: OWN, body: { query: 'q', documents: [] }, usage: null, sums: [0, 0, 0, 0, 0] },
  ])(
    'of $endpoint is sent to its path, and its usage is summed',
    async ({ endpoint, body, usage, sums }) => {
      reply = () => (usage === null ? { results: [] } : { usage });
      const { batch, output, errors } = await runRequests(stack.client, three(body), { endpoint });
      const [input, cached, out, reasoning, total] = sums;
      expect(batch).toMatchObject({
        status: 'completed',
        endpoint,
        model: 'm',
        request_counts: { total: 3, completed: 3, failed: 0 },
        error_file_id: null,
        usage: {
          input_tokens: input,
          input_tokens_details: { cached_tokens: cached },
          output_tokens: out,
          output_tokens_details: { reasoning_tokens: reasoning },
          total_tokens: total,
        },
      });
      expect(output.map((line) => line.custom_id)).toEqual(['c-0', 'c-1', 'c-2']);
      expect(output.map((line) => line.response?.status_code)).toEqual([200, 200, 200]);
      expect(errors).toEqual([]);
      expect(sent().map(({ url }) => url)).toEqual([endpoint, endpoint, endpoint]);
    },
  );

  it('of moderations without a model uses the default model and leaves the bytes unchanged', async () => {
    reply = () => ({ results: [{ flagged: false }] });
    const { batch, output } = await runRequests(stack.client, [{ body: { input: 'hello' } }], {
      endpoint: '/v1/moderations',
    });
    expect(batch).toMatchObject({ status: 'completed', model: 'the-default' });
    expect(sent().map(({ body }) => body.toString())).toEqual(['{"input":"hello"}']);
    expect(output[0]?.response?.body).toEqual({ results: [{ flagged: false }] });
  });
});

describe('an endpoint that is not served', () => {
  it.each(['/v1/images/edits', '/v1/videos', '/v1/nothing', 'chat/completions'])(
    'is refused when the batch is created: %s',
    async (endpoint) => {
      const refused = createBatch(stack.client, inputLines(endpoint, three({})), { endpoint });
      await expect(refused).rejects.toMatchObject({
        status: 400,
        param: 'endpoint',
        code: 'invalid_value',
      });
      await expect(refused).rejects.toBeInstanceOf(BadRequestError);
    },
  );
});

describe('an input file', () => {
  it.each([
    ['/v1/chat/completions', 'messages'],
    ['/v1/completions', 'prompt'],
    ['/v1/embeddings', 'input'],
    ['/v1/responses', 'input'],
    ['/v1/moderations', 'input'],
    [IMAGES, 'prompt'],
  ])('for %s fails without %s, and nothing is sent', async (endpoint, member) => {
    const lines = inputLines(endpoint, [
      { body: { model: 'm', [member]: 'given' } },
      { body: { model: 'm' } },
      { body: { model: 'm', [member]: null } },
      { body: { model: 'm', [member]: 'given', stream: true } },
    ]);
    const batch = await createBatch(stack.client, lines, { endpoint });
    const ended = await untilTerminal(stack.client, batch.id);
    expect(ended.status).toBe('failed');
    expect(ended.errors?.data?.map(({ code, param, line }) => [code, param, line])).toEqual([
      ['missing_required_parameter', `body.${member}`, 2],
      ['missing_required_parameter', `body.${member}`, 3],
      ['streaming_unsupported', 'body.stream', 4],
    ]);
    expect(sent()).toEqual([]);
  });

  it('for an endpoint known from the configuration only needs nothing but a model', async () => {
    const lines = inputLines(OWN, [{ body: { model: 'm' } }, { body: {} }]);
    const batch = await createBatch(stack.client, lines, { endpoint: OWN });
    const ended = await untilTerminal(stack.client, batch.id);
    expect(ended.errors?.data).toMatchObject([
      { code: 'invalid_request', param: 'body.model', line: 2 },
    ]);
  });
});

describe('the configured limits', () => {
  it('bound the requests of an input file', async () => {
    const requests = Array.from({ length: 21 }, () => ({ body: { model: 'm', prompt: 'x' } }));
    const endpoint = '/v1/completions';
    const batch = await createBatch(stack.client, inputLines(endpoint, requests), { endpoint });
    const ended = await untilTerminal(stack.client, batch.id);
    expect(ended.errors?.data).toMatchObject([
      { code: 'too_many_tasks', param: null, line: null, message: expect.stringContaining('20') },
    ]);
  });

  it('bound the inputs of embeddings, not their requests', async () => {
    const endpoint = '/v1/embeddings';
    const four = { body: { model: 'm', input: ['a', 'b', 'c', 'd'] } };
    const tokens = { body: { model: 'm', input: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13] } };
    reply = () => ({ usage: { prompt_tokens: 1, total_tokens: 1 } });
    const fits = await runRequests(stack.client, [four, four, tokens, tokens, tokens, tokens], {
      endpoint,
    });
    expect(fits.batch).toMatchObject({ status: 'completed', request_counts: { completed: 6 } });
    const lines = inputLines(endpoint, [four, four, four, tokens]);
    const batch = await createBatch(stack.client, lines, { endpoint });
    const ended = await untilTerminal(stack.client, batch.id);
    expect(ended.errors?.data).toMatchObject([{ code: 'too_many_inputs', line: null }]);
  });
});
