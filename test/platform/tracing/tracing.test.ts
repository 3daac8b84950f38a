import pino from 'pino';
import { configSchema } from '../../../platform/config-schema';
import { openTracing } from '../../../platform/tracing/open-tracing';
import type { TracedBatch, Tracing } from '../../../platform/tracing/tracing';
import type { OtlpReceiver } from '../../support/otlp-receiver';
import { startGrpcReceiver } from '../../support/otlp-receiver';
import { until } from '../../support/until';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const BATCH: TracedBatch = {
  id: 'batch_1',
  tenant: 'acme',
  inputFileId: 'file-1',
  endpoint: '/v1/embeddings',
  createdAtSec: 1_700_000_000,
  traceContext: null,
};
const CREATED = {
  ...BATCH,
  traceContext: { traceparent: `00-${TRACE}-${CALLER}-01`, startedAtMs: 1_700_000_000_123 },
};

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

let receiver: OtlpReceiver;
const opened: Tracing[] = [];
const log: LogLine[] = [];

beforeAll(async () => {
  receiver = await startGrpcReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  receiver.spans.length = 0;
  log.length = 0;
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((tracing) => tracing.close()));
});

function open(settings: Record<string, unknown> = {}): Tracing {
  const { tracing: parsed } = configSchema.parse({
    tracing: { otlp_endpoint: receiver.url, ...settings },
  });
  const logger = pino({}, { write: (line) => log.push(JSON.parse(line) as LogLine) });
  const tracing = openTracing(parsed, { service: 'nightshift-worker', logger, exportEveryMs: 20 });
  if (tracing === null) throw new Error('tracing is off');
  opened.push(tracing);
  return tracing;
}

async function exported(count: number) {
  await Promise.all(opened.splice(0).map((tracing) => tracing.close()));
  await until(() => receiver.spans.length >= count, 5_000, `${count} spans`);
  return receiver.spans;
}

describe('tracing', () => {
  it('is off without an endpoint, and the SDK is not loaded', () => {
    const logger = pino({ level: 'silent' });
    const loaded = Object.keys(require.cache).length;
    for (const tracing of [{}, { otlp_endpoint: '' }]) {
      const settings = configSchema.parse({ tracing }).tracing;
      expect(openTracing(settings, { service: 'nightshift-api', logger })).toBeNull();
    }
    expect(Object.keys(require.cache)).toHaveLength(loaded);
  });

  it('refuses an endpoint that is not a URL', () => {
    expect(() => open({ otlp_endpoint: 'http://[', protocol: 'http/protobuf' })).toThrow(
      'tracing.otlp_endpoint: *** is not a URL such as http://127.0.0.1:4317.',
    );
  });

  it('exports what is left when it is closed', async () => {
    const tracing = open();
    tracing.beginTrace('sweep', {}).end();
    await tracing.close();
    expect(receiver.spans).toHaveLength(1);
  });
});

describe('the trace of a batch', () => {
  it('is one tree although two workers take part', async () => {
    const [first, second] = [open(), open()];
    first.beginStep('ingest-and-plan', CREATED, { 'batch.input.line_count': 3 })?.end();
    second.beginStep('finalize', CREATED, {})?.end();
    second.recordBatch(CREATED, { attributes: { 'batch.status': 'completed' } });
    const spans = await exported(3);
    const root = spans.find(({ name }) => name === 'process-batch');
    expect(root).toMatchObject({
      ...{ traceId: TRACE, parentSpanId: CALLER, startMs: 1_700_000_000_123, isError: false },
      attributes: {
        'batch.id': 'batch_1',
        'tenant.id': 'acme',
        'file.id': 'file-1',
        'batch.endpoint': '/v1/embeddings',
        'batch.status': 'completed',
      },
    });
    const steps = spans.filter((span) => span !== root);
    expect(steps.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId])).toEqual(
      expect.arrayContaining(
        ['ingest-and-plan', 'finalize'].map((name) => [name, TRACE, root?.spanId]),
      ),
    );
  });

  it('begins with process-batch if the create call was not traced', async () => {
    const [first, second] = [open(), open()];
    first.beginStep('execute-chunk', BATCH, {})?.end();
    second.recordBatch(BATCH, { attributes: {} });
    const spans = await exported(2);
    const root = spans.find(({ name }) => name === 'process-batch');
    const step = spans.find(({ name }) => name === 'execute-chunk');
    expect(root).toMatchObject({ parentSpanId: '', startMs: 1_700_000_000_000 });
    expect(step).toMatchObject({ traceId: root?.traceId, parentSpanId: root?.spanId });
  });

  it('has the same ids if its end is recorded twice', async () => {
    const tracing = open();
    tracing.recordBatch(CREATED, { attributes: {} });
    tracing.recordBatch(CREATED, { attributes: {} });
    const spans = await exported(2);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(1);
  });

  it('records why a batch failed', async () => {
    open().recordBatch(CREATED, { attributes: {}, error: new Error('invalid_json_line') });
    const [root] = await exported(1);
    expect(root).toMatchObject({ isError: true, message: 'invalid_json_line' });
    expect(root?.events).toMatchObject([{ name: 'exception' }]);
  });

  it('is not recorded if the caller decided so, or by the ratio', () => {
    const unsampled = { traceparent: `00-${TRACE}-${CALLER}-00`, startedAtMs: 0 };
    expect(open().beginStep('finalize', { ...BATCH, traceContext: unsampled }, {})).toBeNull();
    expect(open({ sample_ratio: 0 }).beginStep('finalize', BATCH, {})).toBeNull();
    // The caller's decision outweighs the ratio.
    expect(open({ sample_ratio: 0 }).beginStep('finalize', CREATED, {})).not.toBeNull();
  });

  it('is sampled in the given share, by every worker alike', () => {
    const [first, second] = [open({ sample_ratio: 0.3 }), open({ sample_ratio: 0.3 })];
    const isSampled = (tracing: Tracing, i: number): boolean => {
      const span = tracing.beginStep('finalize', { ...BATCH, id: `batch_${i}` }, {});
      span?.discard();
      return span !== null;
    };
    const ids = Array.from({ length: 1_000 }, (_, i) => i);
    const sampled = ids.filter((i) => isSampled(first, i));
    expect(sampled.length).toBeGreaterThan(240);
    expect(sampled.length).toBeLessThan(360);
    expect(ids.filter((i) => isSampled(second, i))).toEqual(sampled);
  });
});

describe('spans below an attempt', () => {
  it('are exported after the attempt has ended, and hang on it', async () => {
    const tracing = open();
    const attempt = tracing.beginStep('execute-chunk', CREATED, {});
    await attempt?.run(async () => {
      tracing.beginChild('storage.Store', { 'storage.key': 'a' })?.end();
      await Promise.resolve();
      tracing.beginChild('storage.Retrieve', { 'storage.key': 'b' })?.end();
    });
    tracing.beginTrace('sweep', {}).end();
    await until(() => receiver.spans.length > 0, 5_000, 'the span that has ended');
    expect(receiver.spans.map(({ name }) => name)).toEqual(['sweep']);
    attempt?.end();
    const spans = (await exported(4)).slice(1);
    const [first, ...below] = spans;
    expect(spans.map(({ name }) => name)).toEqual([
      'execute-chunk',
      'storage.Store',
      'storage.Retrieve',
    ]);
    for (const span of below) expect(span.parentSpanId).toBe(first?.spanId);
  });

  it('vanish with an attempt that is discarded or never ends', async () => {
    const tracing = open();
    for (const end of [(): void => undefined, (span: { discard(): void }) => span.discard()]) {
      const attempt = tracing.beginStep('execute-chunk', CREATED, {});
      attempt?.run(() => tracing.beginChild('storage.Store', {})?.end());
      if (attempt !== null) end(attempt);
    }
    tracing.beginTrace('sweep', {}).end();
    await tracing.close();
    expect(receiver.spans.map(({ name }) => name)).toEqual(['sweep']);
  });

  it('are bounded, and the attempt says how many were dropped', async () => {
    const tracing = open();
    const attempt = tracing.beginStep('execute-chunk', CREATED, {});
    const late = attempt?.run(() => {
      for (let i = 0; i < 205; i++) tracing.beginChild('storage.Store', {})?.end();
      return tracing.beginChild('storage.Store', {});
    });
    attempt?.end();
    late?.end();
    const spans = await exported(202);
    expect(spans).toHaveLength(202);
    expect(spans[0]?.attributes).toMatchObject({ 'nightshift.dropped_spans': 5 });
    expect(spans.filter((span) => 'nightshift.dropped_spans' in span.attributes)).toHaveLength(1);
  });

  it('do not exist without an active span', () => {
    const tracing = open();
    expect(tracing.beginChild('storage.Store', {})).toBeNull();
    expect(tracing.requests({})).toBeNull();
  });
});

describe('a collector', () => {
  it('that is away is reported once, with endpoint and reason, and work goes on', async () => {
    // Below the ports that the system gives away, so no other test listens there meanwhile.
    const endpoint = 'http://127.0.0.1:9';
    const tracing = open({ otlp_endpoint: endpoint });
    for (let i = 0; i < 3; i++) {
      tracing.recordBatch(CREATED, { attributes: {} });
      await until(() => log.some(({ msg }) => msg === 'spans cannot be exported'), 8_000, 'a log');
    }
    await tracing.close();
    const lines = log.filter(({ msg }) => msg === 'spans cannot be exported');
    expect(lines).toMatchObject([{ endpoint, reason: expect.stringContaining('ECONNREFUSED') }]);
  });

  it('that hangs delays the end of the process by at most 3 s', async () => {
    const hanging = await startGrpcReceiver();
    hanging.hangs = true;
    const tracing = open({ otlp_endpoint: hanging.url });
    // More than the buffer holds. Spans end synchronously, so they cannot wait for the collector.
    for (let i = 0; i < 10_000; i++) tracing.beginTrace('sweep', {}).end();
    const closingMs = performance.now();
    await tracing.close();
    // With a reserve for a busy machine; waiting for an export would take 5 s.
    expect(performance.now() - closingMs).toBeLessThan(4_700);
    // All exports under way fail at once.
    await hanging.close();
    await until(() => log.some(({ msg }) => msg === 'spans cannot be exported'), 8_000, 'a log');
  });
});
