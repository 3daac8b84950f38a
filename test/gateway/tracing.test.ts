import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGrpcReceiver, type OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver';
import {
  ANSWER,
  ask,
  type Backend,
  closeAll,
  ONE_IN_FLIGHT,
  startBackend,
  startGateway,
  untilHeld,
  untilQueued,
} from './gateway-fixtures';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const SAMPLED = { traceparent: `00-${TRACE}-${CALLER}-01` };
const NOT_SAMPLED = { traceparent: `00-${TRACE}-${CALLER}-00` };

const TOKEN = 'a-token-of-all-workers';

let receiver: OtlpReceiver;
let folder: string;

beforeAll(async () => {
  receiver = await startGrpcReceiver();
  folder = mkdtempSync(join(tmpdir(), 'nightshift-gateway-traces-'));
  writeFileSync(join(folder, 'token'), TOKEN);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await receiver.close();
});
afterEach(async () => {
  await closeAll();
  receiver.spans.length = 0;
});

function traced(settings: Record<string, unknown> = {}): Record<string, unknown> {
  return { tracing: { otlp_endpoint: receiver.url, request_ratio: 0, ...settings } };
}

/** The headers of requests that the backend was sent. */
function sentTo(backend: Backend) {
  return backend.received.filter(({ method }) => method === 'POST').map(({ headers }) => headers);
}

function named(name: string): ReceivedSpan[] {
  return receiver.spans.filter((span) => span.name === name);
}

it('continues the trace of a client through the gateway to the backend', async () => {
  const backend = await startBackend((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ANSWER));
  });
  const gateway = await startGateway([backend], traced());
  const headers = { ...SAMPLED, tracestate: 'vendor=1', 'x-request-id': 'r1' };
  expect((await ask(gateway, {}, headers).answer).status).toBe(200);
  await gateway.close();
  const [request] = named('gateway-request');
  const [exchange] = named('backend-exchange');
  expect(request).toMatchObject({
    ...{ service: 'nightshift-gateway', traceId: TRACE, parentSpanId: CALLER, isError: false },
    attributes: {
      'gen_ai.request.model': 'm',
      'gateway.pool': 'main',
      'gateway.band': 'standard',
      'gateway.queue_ms': 0,
      'gateway.dispatched_by': 'bypass',
      'gen_ai.usage.input_tokens': 5,
      'gen_ai.usage.output_tokens': 5,
      'tenant.id': 'default',
      'http.route': '/v1/chat/completions',
      'http.request.method': 'POST',
      'http.request.id': 'r1',
      'http.response.status_code': 200,
    },
  });
  expect(exchange).toMatchObject({
    ...{ traceId: TRACE, parentSpanId: request?.spanId, isError: false },
    attributes: {
      'gateway.backend': backend.url,
      'gateway.outcome': 'answered',
      'gateway.ttfb_ms': expect.any(Number) as number,
      'http.response.status_code': 200,
    },
  });
  expect(sentTo(backend)).toMatchObject([
    { traceparent: `00-${TRACE}-${exchange?.spanId}-01`, tracestate: 'vendor=1' },
  ]);
});

it('gives each backend that a request is sent to a span of its own', async () => {
  const refusing = await startBackend((_request, response) => response.writeHead(429).end());
  const other = await startBackend((_request, response) => response.writeHead(429).end());
  const gateway = await startGateway([refusing, other], traced());
  expect((await ask(gateway, {}, SAMPLED).answer).status).toBe(429);
  await gateway.close();
  const [request] = named('gateway-request');
  const exchanges = named('backend-exchange');
  expect(exchanges.map(({ attributes }) => attributes['gateway.outcome'])).toEqual([
    'declined',
    'answered',
  ]);
  expect(exchanges.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(2).fill(request?.spanId));
  expect(exchanges[1]?.attributes['error.type']).toBe('429');
});

it('records a line of a batch if its worker does, and a share of the other requests', async () => {
  const backend = await startBackend((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ANSWER));
  });
  const settings = { worker_token_file: join(folder, 'token'), ...traced({ request_ratio: 1 }) };
  const gateway = await startGateway([backend], settings);
  const worker = { authorization: `Bearer ${TOKEN}`, 'x-request-id': 'line-1' };
  await ask(gateway, {}, worker).answer;
  await ask(gateway, {}, { ...worker, ...NOT_SAMPLED }).answer;
  await ask(gateway, {}, { ...worker, ...SAMPLED }).answer;
  await ask(gateway, {}, { 'x-request-id': 'mine' }).answer;
  await gateway.close();
  const requests = named('gateway-request');
  expect(requests.map(({ attributes }) => attributes['http.request.id'])).toEqual([
    'line-1',
    'mine',
  ]);
  expect(requests[0]).toMatchObject({
    ...{ traceId: TRACE, parentSpanId: CALLER },
    attributes: { 'batch.line.id': 'line-1', 'gateway.band': 'sheddable' },
  });
  expect(requests[1]).toMatchObject({ parentSpanId: '' });
  expect(requests[1]?.attributes).not.toHaveProperty(['batch.line.id']);
  const [plain, unsampled] = sentTo(backend);
  expect(plain).not.toHaveProperty('traceparent');
  expect(unsampled).toMatchObject(NOT_SAMPLED);
});

it('records why a request was not served', async () => {
  const backend = await startBackend();
  const queue = { fair_request_queue: { queue_ttl: '150ms' } };
  const gateway = await startGateway([backend], { ...ONE_IN_FLIGHT, ...queue, ...traced() });
  const running = ask(gateway, { stream: true }, SAMPLED);
  await untilHeld(backend, 1);
  expect((await ask(gateway, {}, SAMPLED).answer).status).toBe(503);
  expect((await ask(gateway, { model: 'unknown' }, SAMPLED).answer).status).toBe(404);
  backend.held[0]?.response.writeHead(200).write('a piece');
  await running.head;
  backend.held[0]?.response.destroy();
  await expect(running.answer).rejects.toThrow();
  await gateway.close();
  const [dropped, unknown, cut] = named('gateway-request');
  expect(dropped).toMatchObject({
    isError: true,
    attributes: { 'gateway.code': 'queue_ttl_expired', 'http.response.status_code': 503 },
  });
  expect(dropped?.attributes['gateway.queue_ms']).toBeGreaterThanOrEqual(150);
  expect(unknown).toMatchObject({ isError: false, attributes: { 'error.type': 'not_found' } });
  expect(cut).toMatchObject({ isError: true });
  expect(cut?.message).not.toContain('the client disconnected');
  expect(named('backend-exchange')).toMatchObject([
    { isError: true, attributes: { 'gateway.outcome': 'lost' } },
  ]);
});

it('records how long a client waited that hung up', async () => {
  const backend = await startBackend();
  const gateway = await startGateway([backend], { ...ONE_IN_FLIGHT, ...traced() });
  ask(gateway);
  await untilHeld(backend, 1);
  const waiting = ask(gateway, {}, SAMPLED);
  await untilQueued(gateway, 1);
  waiting.hangUp();
  await untilQueued(gateway, 0);
  backend.respond();
  await gateway.close();
  expect(named('gateway-request')).toMatchObject([
    {
      isError: true,
      attributes: {
        'gateway.code': 'client_closed',
        'gateway.queue_ms': expect.any(Number) as number,
      },
    },
  ]);
});

it('passes the trace of a client on unchanged when tracing is off', async () => {
  const backend = await startBackend((_request, response) => response.end('{}'));
  const gateway = await startGateway([backend]);
  await ask(gateway, {}, { ...SAMPLED, tracestate: 'vendor=1' }).answer;
  expect(sentTo(backend)).toMatchObject([{ ...SAMPLED, tracestate: 'vendor=1' }]);
});
