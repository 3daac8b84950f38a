import OpenAI from 'openai';
import { until } from '../support/until';
import { closeAll, startBackend, startGateway, untilHeld } from './gateway-fixtures';

afterEach(closeAll);

const MESSAGES = [{ role: 'user' as const, content: 'hello' }];

function event(content: string): string {
  return `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })}\n\n`;
}

it("serves a stream to OpenAI's SDK, and frees the backend when the SDK aborts", async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 0 });
  const starting = openai.chat.completions.create({ model: 'm', messages: MESSAGES, stream: true });
  await untilHeld(backend, 1);
  const { response } = backend.held[0]!;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(event('one'));
  const stream = await starting;
  for await (const { choices } of stream) {
    expect(choices[0]?.delta.content).toBe('one');
    stream.controller.abort();
  }
  await until(() => response.destroyed, 5_000, 'an end at the backend', 5);
  await until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock', 5);
  expect((await openai.models.list()).data.map(({ id }) => id)).toEqual(['m']);
});

it("lets OpenAI's SDK try again after a request was dropped", async () => {
  const backend = await startBackend();
  const one = { watermark_per_backend: 1, lower_bound_per_backend: 1, upper_bound_per_backend: 1 };
  const gateway = await startGateway([backend], {
    request_queue_controller: one,
    fair_request_queue: { queue_ttl: '100ms' },
  });
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'unused', maxRetries: 2 });
  const ask = () => openai.chat.completions.create({ model: 'm', messages: MESSAGES });
  const [first, second] = [ask(), ask()];
  const dropped =
    'gateway_dropped_total{band="standard",code="queue_ttl_expired",process="gateway"}';
  await until(async () => (await gateway.metric(dropped)) === 1, 5_000, 'a drop', 5);
  backend.respond({ id: 'a' });
  await untilHeld(backend, 1);
  backend.respond({ id: 'b' });
  expect([(await first).id, (await second).id].sort()).toEqual(['a', 'b']);
});
