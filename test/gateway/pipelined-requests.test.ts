import { type Client, closeBareServers, connect } from '../support/bare-server';
import { until } from '../support/until';
import {
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  type TestGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

afterEach(closeBareServers);
afterEach(closeAll);

/** A client that sends requests without waiting for answers. */
function pipelining(gateway: TestGateway, requests: number): Client {
  const body = JSON.stringify({ model: 'm' });
  const head = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  const request = `POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n${body}`;
  return connect(Number(new URL(gateway.url).port), request.repeat(requests));
}

const untilIdle = (gateway: TestGateway): Promise<unknown> =>
  until(async () => (await gateway.flow()).stock.requests === 0, 5_000, 'an empty stock', 5);

it('answers pipelined requests in their order', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const client = pipelining(gateway, 3);
  await untilHeld(backend, 3);
  backend.held.reverse();
  for (const name of ['third', 'second', 'first']) backend.respond({ name });
  const names = () => [...client.text().matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
  await until(() => names().length === 3, 5_000, 'three answers', 5);
  expect(names()).toEqual(['first', 'second', 'third']);
});

it('frees the places of pipelined requests when their client leaves', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend]);
  const client = pipelining(gateway, 3);
  await untilHeld(backend, 3);
  // The second answer waits for the first one, and more of it than fits into memory at the backend.
  const [first, second] = backend.held.splice(0, 2);
  if (second !== undefined) backend.held.unshift(second);
  backend.respond('x'.repeat(4_000_000));
  client.socket.destroy();
  await untilIdle(gateway);
  await until(() => first?.response.destroyed === true, 5_000, 'an end at the backend', 5);
});

it('removes pipelined requests from the queue when their client leaves', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], ONE_IN_FLIGHT);
  const client = pipelining(gateway, 20);
  await untilHeld(backend, 1);
  await untilQueued(gateway, 19);
  client.socket.destroy();
  await untilQueued(gateway, 0);
  await untilIdle(gateway);
  expect(backend.received.filter(({ method }) => method === 'POST')).toHaveLength(1);
});
