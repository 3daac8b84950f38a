import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pino from 'pino';
import { spanName } from '../../api/span-names';
import { configSchema } from '../../platform/config-schema';
import { openTracing } from '../../platform/tracing/open-tracing';
import type { Tracing } from '../../platform/tracing/tracing';
import { openFilesystemStore } from '../../storage/objects/filesystem';
import { traceStore } from '../../storage/objects/traced-store';
import { createBatchRepository } from '../../storage/postgres/batches/repository';
import { batchForm, openTestApi, post, type TestApi, upload } from '../support/api';
import type { OtlpReceiver, ReceivedSpan } from '../support/otlp-receiver';
import { startGrpcReceiver } from '../support/otlp-receiver';
import { POSTGRES_START_MS } from '../support/postgres';
import { until } from '../support/until';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const NO_BATCH = `batch_${'0'.repeat(32)}`;
const BATCH = {
  input_file_id: 'file-none',
  endpoint: '/v1/responses',
  completion_window: '24h',
};

let receiver: OtlpReceiver;
let tracing: Tracing;
let api: TestApi;
let folder: string;

beforeAll(async () => {
  receiver = await startGrpcReceiver();
  const settings = configSchema.parse({ tracing: { otlp_endpoint: receiver.url } }).tracing;
  const logger = pino({ level: 'silent' });
  const opened = openTracing(settings, { service: 'nightshift-api', logger, exportEveryMs: 20 });
  if (opened === null) throw new Error('tracing is off');
  tracing = opened;
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'nightshift-traced-'));
  const store = traceStore(await openFilesystemStore({ path: folder }), tracing);
  api = await openTestApi({ deps: { tracing, store } });
}, POSTGRES_START_MS);
afterAll(async () => {
  await api.close();
  await tracing.close();
  await receiver.close();
  await fs.rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  receiver.spans.length = 0;
});

/** The spans of the next request, the first one first. */
async function spansOf(count: number): Promise<ReceivedSpan[]> {
  await until(() => receiver.spans.length >= count, 5_000, `${count} spans`);
  return receiver.spans.splice(0);
}

const contextOf = async (id: string) =>
  (await createBatchRepository(api.database.pool).find(id))?.traceContext;

describe('a traced request', () => {
  it('continues the trace of its caller', async () => {
    const traceparent = `00-${TRACE}-${CALLER}-01`;
    const answer = await api.call(
      post('/v1/batches', BATCH, { traceparent, 'x-request-id': 'r1' }),
    );
    const [span] = await spansOf(1);
    expect(span).toMatchObject({
      ...{ name: 'api-create-batch', traceId: TRACE, parentSpanId: CALLER, isError: false },
      attributes: {
        'batch.id': answer.body.id,
        'file.id': 'file-none',
        'tenant.id': 'default',
        'http.request.method': 'POST',
        'http.route': '/v1/batches',
        'http.request.id': 'r1',
        'http.response.status_code': 200,
      },
    });
  });

  it('that creates a batch leaves its place in the row, with the state of the caller', async () => {
    const caller = { traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: 'vendor=1' };
    const answer = await api.call(post('/v1/batches', BATCH, caller));
    const [span] = await spansOf(1);
    expect(await contextOf(answer.body.id)).toEqual({
      traceparent: `00-${TRACE}-${span?.spanId}-01`,
      tracestate: 'vendor=1',
      startedAtMs: api.clock.nowMs,
    });
  });

  it('that repeats a creation names the batch of the first one', async () => {
    const headers = { 'idempotency-key': 'once' };
    const [first, again] = [
      await api.call(post('/v1/batches', BATCH, headers)),
      await api.call(post('/v1/batches', BATCH, headers)),
    ];
    expect(again.body.id).toBe(first.body.id);
    const ids = (await spansOf(2)).map(({ attributes }) => attributes['batch.id']);
    expect(ids).toEqual([first.body.id, first.body.id]);
  });

  it('begins a trace without a caller, or with one that is malformed', async () => {
    for (const headers of [{}, { traceparent: 'nonsense' }]) {
      const answer = await api.call(post('/v1/batches', BATCH, headers));
      const [span] = await spansOf(1);
      expect(span?.parentSpanId).toBe('');
      const context = await contextOf(answer.body.id);
      expect(context?.traceparent).toBe(`00-${span?.traceId}-${span?.spanId}-01`);
    }
  });

  it('of a caller that is not sampled is not recorded, and neither is its batch', async () => {
    const headers = { traceparent: `00-${TRACE}-${CALLER}-00` };
    const answer = await api.call(post('/v1/batches', BATCH, headers));
    expect((await contextOf(answer.body.id))?.traceparent).toMatch(
      new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`),
    );
    await api.call({ url: `/v1/batches/${NO_BATCH}` });
    expect((await spansOf(1)).map(({ name }) => name)).toEqual(['api-get-batch']);
  });

  it('has the operations of the object store below it', async () => {
    const file = await api.call(upload(batchForm()));
    await api.call({ url: `/v1/files/${file.body.id}/content` });
    const spans = await spansOf(4);
    expect(spans.map(({ name }) => name)).toEqual([
      'api-create-file',
      'storage.Store',
      'api-download-file',
      'storage.Retrieve',
    ]);
    const [create, store, download, retrieve] = spans;
    expect(store).toMatchObject({ parentSpanId: create?.spanId, traceId: create?.traceId });
    expect(retrieve).toMatchObject({ parentSpanId: download?.spanId });
    expect(retrieve?.attributes['storage.key']).toBe(store?.attributes['storage.key']);
    for (const span of [create, download]) {
      expect(span?.attributes).toMatchObject({ 'file.id': file.body.id });
    }
  });

  it('that is refused has its status and the code, and is no failure of ours', async () => {
    await api.call({ url: `/v1/batches/${NO_BATCH}` });
    const [span] = await spansOf(1);
    expect(span).toMatchObject({
      ...{ name: 'api-get-batch', isError: false },
      attributes: {
        ...{ 'batch.id': NO_BATCH, 'error.type': 'not_found' },
        'http.response.status_code': 404,
      },
    });
  });

  it('that fails has an exception', async () => {
    const { store } = api;
    const failing = await openTestApi({
      deps: { tracing, files: { get: () => Promise.reject(new Error('boom')) } as never, store },
    });
    await failing.call({ url: '/v1/files/file-1' });
    const [span] = await spansOf(1);
    expect(span).toMatchObject({ name: 'api-get-file', isError: true, message: 'boom' });
    expect(span?.events).toMatchObject([{ name: 'exception' }]);
    await failing.close();
  }, 30_000);
});

describe('a request without a span', () => {
  it('is a probe, and every route of the API has one', async () => {
    await api.call({ url: '/health' });
    await api.call({ url: '/openapi.json' });
    const document = (await api.call({ url: '/openapi.json' })).body as {
      paths: Record<string, Record<string, unknown>>;
    };
    const routes = Object.entries(document.paths).flatMap(([url, methods]) =>
      Object.keys(methods)
        .filter((method) => /^(get|post|delete)$/.test(method))
        .map((method) => [method.toUpperCase(), url.replaceAll(/\{(\w+)\}/g, ':$1')] as const),
    );
    const without = routes.filter(([method, url]) => spanName(method, url) === undefined);
    expect(without.filter(([, url]) => url.startsWith('/v1'))).toEqual([]);
    expect(routes.length - without.length).toBeGreaterThanOrEqual(13);
    await api.call({ url: '/v1/batches' });
    expect((await spansOf(1)).map(({ name }) => name)).toEqual(['api-list-batch']);
  });
});
