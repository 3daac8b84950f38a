import { configSchema } from '../../../platform/config-schema';
import { openTracing } from '../../../platform/tracing/open-tracing';
import type { RequestEnd, RequestSpans, Tracing } from '../../../platform/tracing/tracing';
import type { OtlpReceiver } from '../../support/otlp-receiver';
import { startGrpcReceiver } from '../../support/otlp-receiver';
import pino from 'pino';

const BATCH = {
  ...{ id: 'batch_1', tenant: 't', inputFileId: 'f', endpoint: '/v1/embeddings' },
  ...{ createdAtSec: 1, traceContext: null },
};
const ANSWERED: RequestEnd = {
  ...{ status: 200, failure: null, outcome: 'answered', retryAtMs: null },
};

let receiver: OtlpReceiver;
beforeAll(async () => {
  receiver = await startGrpcReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  receiver.spans.length = 0;
});

/** Runs `work` in an attempt at a chunk, and returns the spans of its requests. */
async function requestsOf(
  settings: Record<string, unknown>,
  work: (spans: RequestSpans) => void | Promise<void>,
) {
  const tracing = open(settings);
  const attempt = tracing.beginStep('execute-chunk', BATCH, {});
  await attempt?.run(async () => {
    const spans = tracing.requests({ 'gen_ai.request.model': 'm' });
    if (spans !== null) await work(spans);
  });
  attempt?.end();
  await tracing.close();
  const [first, ...below] = receiver.spans;
  for (const span of below) expect(span.parentSpanId).toBe(first?.spanId);
  return below;
}

function open(settings: Record<string, unknown>): Tracing {
  const tracing = { otlp_endpoint: receiver.url, ...settings };
  const parsed = configSchema.parse({ tracing }).tracing;
  const logger = pino({ level: 'silent' });
  const opened = openTracing(parsed, { service: 'nightshift-worker', logger });
  if (opened === null) throw new Error('tracing is off');
  return opened;
}

/** Ends `count` requests of lines of 173 bytes, and returns the offsets of the sampled ones. */
function send(spans: RequestSpans, count: number, end = ANSWERED): number[] {
  const sampled: number[] = [];
  for (let i = 0; i < count; i++) {
    const span = spans.begin({ id: `line-${i}`, offset: 173 * i, tries: 0 });
    if (span.headers !== null) sampled.push(173 * i);
    span.end(end);
  }
  return sampled;
}

describe('the spans of requests', () => {
  it('are those of the given share of the lines, the same in every attempt', async () => {
    const sampled: number[][] = [];
    for (let attempt = 0; attempt < 2; attempt++) {
      const spans = await requestsOf({ request_ratio: 0.02 }, (requests) => {
        sampled.push(send(requests, 4_000));
      });
      expect(spans).toHaveLength(sampled[attempt]?.length ?? -1);
      receiver.spans.length = 0;
    }
    expect(sampled[0]?.length).toBeGreaterThan(50);
    expect(sampled[0]?.length).toBeLessThan(100);
    expect(sampled[1]).toEqual(sampled[0]);
  });

  it('carry the headers that name them', async () => {
    let headers: unknown;
    const [span] = await requestsOf({ request_ratio: 1 }, (requests) => {
      const request = requests.begin({ id: 'line', offset: 0, tries: 2 });
      headers = request.headers;
      request.end({ ...ANSWERED, status: 429, outcome: 'retry', retryAtMs: Date.now() + 5_000 });
    });
    expect(headers).toEqual({ traceparent: `00-${span?.traceId}-${span?.spanId}-01` });
    expect(span).toMatchObject({
      ...{ name: 'http-request', isError: true },
      attributes: {
        'gen_ai.request.model': 'm',
        'batch.line.id': 'line',
        'http.request.resend_count': 2,
        'http.response.status_code': 429,
        'error.type': '429',
        'nightshift.outcome': 'retry',
      },
    });
    expect(span?.events).toMatchObject([{ name: 'retry' }]);
    expect(span?.events[0]?.attributes['retry.pause_ms']).toBeGreaterThan(4_000);
  });

  it('are at most 100 in an attempt, and every line with headers has one', async () => {
    let sampled = 0;
    const spans = await requestsOf({ request_ratio: 1 }, (requests) => {
      sampled = send(requests, 500).length;
    });
    expect(sampled).toBe(100);
    expect(spans).toHaveLength(100);
  });

  it('include failed requests of other lines, at most 50 in an attempt', async () => {
    const failed = { ...ANSWERED, status: null, failure: 'timeout', outcome: 'retry' };
    const spans = await requestsOf({ request_ratio: 0 }, (requests) => {
      expect(send(requests, 10)).toEqual([]);
      expect(send(requests, 60, failed)).toEqual([]);
    });
    expect(spans).toHaveLength(50);
    expect(spans[0]).toMatchObject({ isError: true, attributes: { 'error.type': 'timeout' } });
  });

  it('include slow requests of other lines, with their whole duration', async () => {
    const spans = await requestsOf({ request_ratio: 0, slow_request: '20ms' }, async (requests) => {
      const request = requests.begin({ id: 'line', offset: 0, tries: 0 });
      const startedMs = performance.now();
      while (performance.now() - startedMs < 30) await Promise.resolve();
      request.end(ANSWERED);
    });
    expect(spans).toHaveLength(1);
    expect((spans[0]?.endMs ?? 0) - (spans[0]?.startMs ?? 0)).toBeGreaterThanOrEqual(29);
  });
});
